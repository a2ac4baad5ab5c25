package demo

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/go-json-experiment/json/jsontext"
)

func runEcho(_ context.Context, c *call) (mcp.Result, error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := errors.Join(c.require("text"), c.decode(&args)); err != nil {
		return failure(err.Error())
	}
	return text("%s", args.Text)
}

func runAdd(_ context.Context, c *call) (mcp.Result, error) {
	var args struct {
		A jsontext.Value `json:"a"`
		B jsontext.Value `json:"b"`
	}
	if err := errors.Join(c.require("a", "b"), c.decode(&args)); err != nil {
		return failure(err.Error())
	}
	a, errA := exact("a", args.A)
	b, errB := exact("b", args.B)
	if err := errors.Join(errA, errB); err != nil {
		return failure(err.Error())
	}
	sum := a.Add(a, b)
	digits, _ := sum.FloatPrec() // a sum of decimals is one
	return text("%s", sum.FloatString(digits))
}

// The largest numbers that add takes: an exponent is cheap to write and dear to
// compute with.
const (
	maxNumberBytes = 1000
	maxExponent    = 1000
)

// exact returns the number that raw is.
func exact(name string, raw jsontext.Value) (*big.Rat, error) {
	if raw.Kind() != '0' {
		return nil, fmt.Errorf("invalid arguments: %s must be a number", name)
	}
	literal := string(raw)
	exponent := new(big.Int)
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		exponent.SetString(literal[i+1:], 10)
	}
	if len(literal) > maxNumberBytes || exponent.CmpAbs(big.NewInt(maxExponent)) > 0 {
		return nil, fmt.Errorf("invalid arguments: %s is out of range", name)
	}
	number, ok := new(big.Rat).SetString(literal)
	if !ok {
		return nil, fmt.Errorf("invalid arguments: %s must be a number", name)
	}
	return number, nil
}

func runSlow(ctx context.Context, c *call) (mcp.Result, error) {
	args := struct {
		Steps int `json:"steps"`
		Delay int `json:"delay_ms"`
	}{5, 200}
	if err := c.decode(&args); err != nil {
		return failure(err.Error())
	}
	if args.Steps < 1 || args.Steps > 1000 || args.Delay < 0 || args.Delay > 60_000 {
		return failure("invalid arguments: steps must be 1 to 1000 and delay_ms 0 to 60000")
	}
	for step := 1; step <= args.Steps; step++ {
		select {
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		case <-time.After(time.Duration(args.Delay) * time.Millisecond):
		}
		if err := c.progress(ctx, step, args.Steps); err != nil {
			return mcp.Result{}, err
		}
	}
	return text("Done in %d steps.", args.Steps)
}

// progress tells how far the call is, if that is wanted.
func (c *call) progress(ctx context.Context, step, steps int) error {
	token := c.req.Meta.ProgressToken
	if token.IsZero() {
		return nil
	}
	return c.notify(ctx, mcp.NotificationProgress, object{
		mcp.MetaProgressToken: jsontext.Value(token.Raw()),
		"progress":            step, "total": steps,
		"message": fmt.Sprintf("step %d of %d", step, steps),
	})
}

func (c *call) notify(ctx context.Context, method string, params object) error {
	value, err := encode(params)
	if err != nil {
		return err
	}
	return c.caller.Notify(ctx, &mcp.Notification{Method: method, Params: value})
}

// levels in rising severity.
var levels = [...]mcp.Level{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func runLog(ctx context.Context, c *call) (mcp.Result, error) {
	args := struct {
		Text string `json:"text"`
	}{"hello from the demo"}
	if err := c.decode(&args); err != nil {
		return failure(err.Error())
	}
	wanted, sent := wantedLevel(&c.req.Meta), 0
	for _, level := range levels {
		if !wanted.Includes(level) {
			continue
		}
		err := c.notify(ctx, mcp.NotificationMessage, object{"level": level, "logger": Name, "data": args.Text})
		if err != nil {
			return mcp.Result{}, err
		}
		sent++
	}
	return text("Sent %d log messages.", sent)
}

// wantedLevel is the least severe level that a client wants. A modern one says
// so with each request; to a legacy one that has set no level "the server MAY
// decide which messages to send" (2025-11-25, utilities/logging).
func wantedLevel(meta *mcp.Metadata) mcp.Level {
	if meta.LogLevel == "" && meta.Revision.Era() == mcp.Legacy {
		return "info"
	}
	return meta.LogLevel
}

func runImage(context.Context, *call) (mcp.Result, error) {
	picture, err := draw()
	if err != nil {
		return mcp.Result{}, err
	}
	return result(toolResult{Content: []object{{"type": "image", "data": picture, "mimeType": "image/png"}}})
}

func runFail(_ context.Context, c *call) (mcp.Result, error) {
	args := struct {
		Text string `json:"text"`
	}{"The tool failed, as it was asked to."}
	if err := c.decode(&args); err != nil {
		return failure(err.Error())
	}
	return failure(args.Text)
}

func runCrash(context.Context, *call) (mcp.Result, error) {
	return mcp.Result{}, &jsonrpc.Error{
		Code:    jsonrpc.CodeInternalError,
		Message: "The server failed, as it was asked to.",
		Data:    jsonrpc.Trusted([]byte(`{"demo":true}`)),
	}
}

// maxBig is how long a text big writes.
const maxBig = 16 << 20

func runBig(_ context.Context, c *call) (mcp.Result, error) {
	args := struct {
		Bytes int `json:"bytes"`
	}{1 << 20}
	if err := c.decode(&args); err != nil {
		return failure(err.Error())
	}
	if args.Bytes < 0 || args.Bytes > maxBig {
		return failure(fmt.Sprintf("invalid arguments: bytes must be 0 to %d", maxBig))
	}
	const line = "The quick brown fox jumps over the lazy dog. 0123456789 abcdefg\n"
	return text("%s", strings.Repeat(line, args.Bytes/len(line)+1)[:args.Bytes])
}

func runStructured(_ context.Context, c *call) (mcp.Result, error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := errors.Join(c.require("text"), c.decode(&args)); err != nil {
		return failure(err.Error())
	}
	counts := struct {
		Characters int `json:"characters"`
		Words      int `json:"words"`
		Lines      int `json:"lines"`
	}{utf8.RuneCountInString(args.Text), len(strings.Fields(args.Text)), strings.Count(args.Text, "\n") + 1}
	// "For backwards compatibility, a tool that returns structured content
	// SHOULD also return the serialized JSON" (server/tools).
	summary := fmt.Sprintf(`{"characters":%d,"words":%d,"lines":%d}`, counts.Characters, counts.Words, counts.Lines)
	return result(toolResult{Content: []object{textItem(summary)}, Structured: counts})
}

const cannotAsk = "The client cannot be asked: it has not declared elicitation with forms."

func runAsk(ctx context.Context, c *call) (mcp.Result, error) {
	if !takesForms(c.req.Meta.Capabilities) {
		return failure(cannotAsk)
	}
	question, err := encode(object{
		"message":         "What is your name?",
		"requestedSchema": schema(`"name":{"type":"string","title":"Name","minLength":1}`, "name"),
	})
	if err != nil {
		return mcp.Result{}, err
	}
	answer, err := c.caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: question})
	if errors.Is(err, mcp.ErrCannotAsk) {
		return failure(cannotAsk)
	}
	if err != nil {
		return mcp.Result{}, err
	}
	if action, _ := answer.LookupString("action"); action != "accept" {
		return text("No name was given: %.20s.", action)
	}
	given := answer.Get("content")
	name, _ := given.LookupString("name")
	return text("Hello, %s!", name)
}

// takesForms reports whether a client with these capabilities can show a form.
// "An empty capabilities object is equivalent to declaring support for form mode
// only" (2025-11-25, client/elicitation).
func takesForms(capabilities []byte) bool {
	declared := jsonrpc.Trusted(capabilities)
	elicitation := declared.Get("elicitation")
	_, form := elicitation.Lookup("form")
	return elicitation.IsObject() && (form || elicitation.Len() == 0)
}

func runToggle(_ context.Context, c *call) (mcp.Result, error) {
	args := struct {
		What string `json:"what"`
	}{kindResource.String()}
	if err := c.decode(&args); err != nil {
		return failure(err.Error())
	}
	for k := range kinds {
		switch {
		case k.String() != args.What:
		case c.server.toggle(k):
			return text("The extra %v is there now.", k)
		default:
			return text("The extra %v is gone.", k)
		}
	}
	return failure("invalid arguments: what must be resource, tool or prompt")
}

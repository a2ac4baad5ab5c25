package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// none are the arguments of a tool that takes none.
type none struct{}

// addTools adds the tools that need nothing of the client. Those whose arguments
// have bounds or defaults bring a schema; that of the others is inferred.
func addTools(s *server.Server) {
	server.AddTool(s, mcp.Tool{Name: "echo", Title: "Echo", Description: "Gives the text back."}, echo)
	server.AddTool(s, mcp.Tool{
		Name: "add", Title: "Add", Description: "Adds two numbers of any size, exactly.",
		InputSchema: schema(`"a":{"type":"number"},"b":{"type":"number"}`, "a", "b"),
	}, add)
	server.AddTool(s, mcp.Tool{
		Name: "slow", Title: "Take time", Description: "Takes its time in steps, tells its progress, and can be cancelled.",
		InputSchema: schema(`"steps":{"type":"integer","minimum":1,"maximum":1000,"default":5},` +
			`"delay_ms":{"type":"integer","minimum":0,"maximum":60000,"default":200}`),
	}, slow)
	server.AddTool(s, mcp.Tool{
		Name: "log", Title: "Log", Description: "Sends a log message of each level that is wanted.",
		InputSchema: schema(`"text":{"type":"string","default":"hello from the demo"}`),
	}, log)
	server.AddTool(s, mcp.Tool{Name: "image", Title: "Draw", Description: "Draws a small PNG."}, picture)
	server.AddTool(s, mcp.Tool{
		Name: "fail", Title: "Fail", Description: "Fails, as a tool does: with a result that is an error.",
		InputSchema: schema(`"text":{"type":"string","default":"The tool failed, as it was asked to."}`),
	}, fail)
	server.AddTool(s, mcp.Tool{Name: "crash", Title: "Crash", Description: "Fails, as a server does: with a JSON-RPC error."}, crash)
	server.AddTool(s, mcp.Tool{
		Name: "big", Title: "Write much", Description: "Writes a text of the given size.",
		InputSchema: schema(`"bytes":{"type":"integer","minimum":0,"maximum":16777216,"default":1048576}`),
	}, write)
	server.AddTool(s, mcp.Tool{
		Name: "structured", Title: "Count", Description: "Counts the characters, words and lines of a text.",
	}, count)
}

// schema is the JSON Schema of an object with the given properties.
func schema(properties string, required ...string) mcp.JSON {
	s := `{"type":"object","properties":{` + properties + `}`
	if len(required) > 0 {
		s += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return mcp.JSON(s + `}`)
}

type textArgs struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *server.Call, in textArgs) (string, error) { return in.Text, nil }

type slowArgs struct {
	Steps int `json:"steps"`
	Delay int `json:"delay_ms"`
}

func slow(ctx context.Context, call *server.Call, in slowArgs) (string, error) {
	for step := 1; step <= in.Steps; step++ {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Duration(in.Delay) * time.Millisecond):
		}
		message := fmt.Sprintf("step %d of %d", step, in.Steps)
		if err := call.Progress(ctx, float64(step), float64(in.Steps), message); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Done in %d steps.", in.Steps), nil
}

// levels in rising severity.
var levels = []mcp.Level{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func log(ctx context.Context, call *server.Call, in textArgs) (string, error) {
	for _, level := range levels {
		if err := call.Log(ctx, level, Name, in.Text); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Logged at %d levels, of which you get those that you want.", len(levels)), nil
}

func picture(context.Context, *server.Call, none) (mcp.Contents, error) {
	png, err := draw()
	return mcp.Contents{&mcp.Image{Data: png, MIMEType: "image/png"}}, err
}

func fail(_ context.Context, _ *server.Call, in textArgs) (string, error) {
	return "", errors.New(in.Text)
}

func crash(context.Context, *server.Call, none) (string, error) {
	return "", &jsonrpc.Error{
		Code:    jsonrpc.CodeInternalError,
		Message: "The server failed, as it was asked to.",
		Data:    jsonrpc.Trusted([]byte(`{"demo":true}`)),
	}
}

type bigArgs struct {
	Bytes int `json:"bytes"`
}

func write(_ context.Context, _ *server.Call, in bigArgs) (string, error) {
	const line = "The quick brown fox jumps over the lazy dog. 0123456789 abcdefg\n"
	return strings.Repeat(line, in.Bytes/len(line)+1)[:in.Bytes], nil
}

type counts struct {
	Characters int `json:"characters"`
	Words      int `json:"words"`
	Lines      int `json:"lines"`
}

func count(_ context.Context, _ *server.Call, in textArgs) (counts, error) {
	return counts{utf8.RuneCountInString(in.Text), len(strings.Fields(in.Text)), strings.Count(in.Text, "\n") + 1}, nil
}

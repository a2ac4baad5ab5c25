//lint:file-ignore SA1019 logging, sampling and roots are deprecated, and checked for as long as they are in use

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const modernVersion = "2026-07-28"

// check runs one check. The second result, if any, has to be the same through
// a bridge as without one.
func (c *client) check(ctx context.Context, name string) (detail, same string, err error) {
	if name != "connect" && c.session == nil {
		return "", "", errors.New("not connected")
	}
	p := c.opts.profile
	switch name {
	case "connect":
		detail, err = c.connect(ctx)
	case "list":
		return c.list(ctx)
	case "call":
		err = c.call(ctx)
	case "error":
		return c.fail(ctx)
	case "read":
		return c.read(ctx)
	case "prompt":
		same, err = c.prompt(ctx)
	case "complete":
		err = c.complete(ctx)
	case "progress":
		detail, err = c.progress(ctx)
	case "cancel":
		detail, err = c.cancel(ctx)
	case "log":
		detail, err = c.log(ctx)
	case "updated":
		err = c.resourceUpdated(ctx)
	case "listchanged":
		err = c.listChanged(ctx)
	case "elicit":
		err = c.question(ctx, p.Elicit)
	case "sample":
		err = c.question(ctx, p.Sample)
	case "roots":
		err = c.question(ctx, p.Roots)
	case "url":
		err = c.question(ctx, p.URL)
	case "urlerror":
		err = c.urlError(ctx)
	case "exact":
		err = c.exact(ctx)
	case "big":
		err = c.big(ctx)
	case "many":
		err = c.many(ctx)
	default:
		err = errors.New("no such check")
	}
	return detail, same, err
}

func (c *client) connect(ctx context.Context) (string, error) {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "interop-gosdk", Version: "1.0.0"}, c.handlers())
	sdk.AddRoots(&mcp.Root{URI: c.opts.profile.Root, Name: "interop"})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: c.opts.http}
	if len(c.opts.stdio) > 0 {
		cmd := exec.Command(c.opts.stdio[0], c.opts.stdio[1:]...)
		cmd.Stderr = os.Stderr
		transport = &mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}
	}
	var session *mcp.ClientSessionOptions
	if os.Getenv("INTEROP_MODE") == "legacy" {
		session = &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	}
	cs, err := sdk.Connect(ctx, transport, session)
	if err != nil {
		return "", err
	}
	c.session = cs
	got := cs.InitializeResult()
	if got.ServerInfo == nil || got.ServerInfo.Name != c.opts.profile.Server {
		return "", fmt.Errorf("server is %+v, want %s", got.ServerInfo, c.opts.profile.Server)
	}
	if era := c.opts.era; era != "any" && c.modern() != (era == "modern") {
		return "", fmt.Errorf("negotiated %s, want the %s era", got.ProtocolVersion, era)
	}
	return got.ServerInfo.Name + " " + got.ProtocolVersion, nil
}

func (c *client) modern() bool {
	return c.session.InitializeResult().ProtocolVersion >= modernVersion
}

func (c *client) list(ctx context.Context) (detail, same string, err error) {
	var tools []*mcp.Tool
	var names []string
	for tool, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return "", "", err
		}
		tools = append(tools, tool)
		names = append(names, tool.Name)
	}
	for _, want := range c.opts.profile.Tools {
		if !slices.Contains(names, want) {
			return "", "", fmt.Errorf("no tool %s in %v", want, names)
		}
	}
	return fmt.Sprintf("%d tools", len(tools)), digest(tools), nil
}

func (c *client) call(ctx context.Context) error {
	text := "Grüezi \"\\\" \n\t\u2028 🎈 \u0000 </script>"
	got, err := c.echo(ctx, text, 0)
	if err == nil && got != text {
		err = fmt.Errorf("echo gave %q", got)
	}
	return err
}

func (c *client) fail(ctx context.Context) (detail, same string, err error) {
	calls := []call{{Tool: "no-such-tool"}}
	if f := c.opts.profile.Fail; f != nil {
		calls = append(calls, *f)
	}
	var got []string
	for _, failing := range calls {
		result, err := c.tool(ctx, failing.Tool, failing.Args, nil)
		wire, ok := errors.AsType[*jsonrpc.Error](err)
		switch {
		case ok:
			got = append(got, fmt.Sprintf("error %d %s", wire.Code, wire.Message))
		case err != nil:
			return "", "", err
		case !result.IsError:
			return "", "", fmt.Errorf("%s did not fail", failing.Tool)
		default:
			got = append(got, "isError "+textOf(result))
		}
	}
	all := strings.Join(got, "; ")
	return all, all, c.call(ctx)
}

func (c *client) read(ctx context.Context) (detail, same string, err error) {
	p := c.opts.profile.Read
	listed := false
	for r, err := range c.session.Resources(ctx, nil) {
		if err != nil {
			return "", "", err
		}
		listed = listed || r.URI == p.URI
	}
	if !listed {
		return "", "", fmt.Errorf("%s is not listed", p.URI)
	}
	result, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: p.URI})
	if err != nil {
		return "", "", err
	}
	var text strings.Builder
	for _, content := range result.Contents {
		text.WriteString(content.Text)
	}
	if !strings.Contains(text.String(), p.Want) {
		return "", "", fmt.Errorf("read gave %.80q", text.String())
	}
	return fmt.Sprintf("%d bytes", text.Len()), digest(result.Contents), nil
}

func (c *client) prompt(ctx context.Context) (same string, err error) {
	p := c.opts.profile.Prompt
	listed := false
	for prompt, err := range c.session.Prompts(ctx, nil) {
		if err != nil {
			return "", err
		}
		listed = listed || prompt.Name == p.Name
	}
	if !listed {
		return "", fmt.Errorf("%s is not listed", p.Name)
	}
	result, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name, Arguments: p.Args})
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(result.Messages)
	if err == nil && !strings.Contains(string(b), p.Want) {
		err = fmt.Errorf("prompt gave %s", b)
	}
	return digest(result.Messages), err
}

func (c *client) complete(ctx context.Context) error {
	p := c.opts.profile.Complete
	result, err := c.session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: p.Prompt},
		Argument: mcp.CompleteParamsArgument{Name: p.Argument, Value: p.Value},
	})
	if err == nil && !slices.Equal(result.Completion.Values, p.Want) {
		err = fmt.Errorf("completion gave %v", result.Completion.Values)
	}
	return err
}

func (c *client) progress(ctx context.Context) (string, error) {
	p := c.opts.profile.Progress
	var steps []float64
	if _, err := c.tool(ctx, p.Tool, p.Args, func(step float64) { steps = append(steps, step) }); err != nil {
		return "", err
	}
	seen := func() []float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Clone(steps)
	}
	before := seen()
	if len(before) < 2 {
		return "", fmt.Errorf("%d progress notifications before the result: %v", len(before), before)
	}
	for i := 1; i < len(before); i++ {
		if before[i] <= before[i-1] {
			return "", fmt.Errorf("progress not increasing: %v", before)
		}
	}
	time.Sleep(100 * time.Millisecond)
	return fmt.Sprintf("%d notifications, %d late", len(before), len(seen())-len(before)), nil
}

func (c *client) cancel(ctx context.Context) (string, error) {
	p := c.opts.profile.Cancel
	callCtx, abort := context.WithTimeout(ctx, 20*time.Second)
	defer abort()
	var aborted time.Time
	result, err := c.tool(callCtx, p.Tool, p.Args, func(float64) {
		if aborted.IsZero() {
			aborted = time.Now()
			abort()
		}
	})
	c.mu.Lock()
	took := time.Since(aborted).Round(time.Millisecond)
	never := aborted.IsZero()
	c.mu.Unlock()
	switch {
	case never:
		return "", fmt.Errorf("no progress to abort after: %v, %v", result, err)
	case err == nil:
		return "", errors.New("the aborted call returned a result")
	case took > 2*time.Second:
		return "", fmt.Errorf("the aborted call took %v to end", took)
	}
	if err := c.call(ctx); err != nil {
		return "", err
	}
	if p.Count == "" {
		return fmt.Sprintf("ended after %v", took), nil
	}
	err = eventually(5*time.Second, "the server did not see the cancellation", func() (bool, error) {
		result, err := c.tool(ctx, p.Count, nil, nil)
		return err == nil && textOf(result) != "0", err
	})
	return fmt.Sprintf("ended after %v, seen by the server", took), err
}

func (c *client) log(ctx context.Context) (string, error) {
	p := c.opts.profile.Log
	if !c.modern() {
		if err := c.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	c.logs = nil
	c.mu.Unlock()
	if _, err := c.tool(ctx, p.Tool, p.Args, nil); err != nil {
		return "", err
	}
	return p.Want, eventually(8*time.Second, "no log message", func() (bool, error) {
		return c.saw(&c.logs, p.Want), nil
	})
}

func (c *client) resourceUpdated(ctx context.Context) error {
	p := c.opts.profile.Updated
	if err := c.session.Subscribe(ctx, &mcp.SubscribeParams{URI: p.URI}); err != nil {
		return err
	}
	// On a modern connection Subscribe does not wait for the acknowledgement,
	// so the trigger is repeated.
	err := eventually(8*time.Second, "no resources/updated", func() (bool, error) {
		if _, err := c.tool(ctx, p.Tool, p.Args, nil); err != nil {
			return false, err
		}
		for range 10 {
			if c.saw(&c.updated, p.URI) {
				return true, nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false, nil
	})
	return errors.Join(err, c.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: p.URI}))
}

func (c *client) listChanged(ctx context.Context) error {
	p := c.opts.profile.ListChanged
	c.mu.Lock()
	c.changed = nil
	c.mu.Unlock()
	if _, err := c.tool(ctx, p.Tool, p.Args, nil); err != nil {
		return err
	}
	return eventually(8*time.Second, "no "+p.Kind+"/list_changed", func() (bool, error) {
		return c.saw(&c.changed, p.Kind), nil
	})
}

func (c *client) question(ctx context.Context, p call) error {
	var text string
	err := eventually(8*time.Second, "answer not used", func() (bool, error) {
		result, err := c.tool(ctx, p.Tool, p.Args, nil)
		if err != nil {
			return false, err
		}
		text = textOf(result)
		return strings.Contains(text, p.Want), nil
	})
	if err != nil {
		return fmt.Errorf("%w (last result %.300q)", err, text)
	}
	return nil
}

// urlError: a legacy client gets -32042 as it came, and asks again once the
// user has been there. A modern one has no such error: its call ends by itself.
func (c *client) urlError(ctx context.Context) error {
	p := c.opts.profile.URLError
	if !c.modern() {
		_, err := c.tool(ctx, p.Tool, p.Args, nil)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != mcp.CodeURLElicitationRequired {
			return fmt.Errorf("first call: %v, want error -32042", err)
		}
	}
	return c.question(ctx, p)
}

func (c *client) exact(ctx context.Context) error {
	const digits = "9007199254740993"
	result, err := c.tool(ctx, c.opts.profile.Exact.Tool, map[string]any{"n": json.Number(digits)}, nil)
	if err == nil && textOf(result) != digits {
		err = fmt.Errorf("%s came back as %s", digits, textOf(result))
	}
	return err
}

func (c *client) big(ctx context.Context) error {
	text := strings.Repeat(`x1"\y`, 1<<20/5+1)[:1<<20]
	got, err := c.echo(ctx, text, 1)
	if err == nil && got != text {
		err = fmt.Errorf("1 MiB came back as %d bytes, or changed", len(got))
	}
	return err
}

func (c *client) many(ctx context.Context) error {
	const calls = 20
	errs := make(chan error, calls)
	for i := range calls {
		go func() {
			text := fmt.Sprintf("call %d of twenty", i)
			got, err := c.echo(ctx, text, 100+i)
			if err == nil && got != text {
				err = fmt.Errorf("call %d got %q", i, got)
			}
			errs <- err
		}()
	}
	var all error
	for range calls {
		all = errors.Join(all, <-errs)
	}
	return all
}

func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16]
}

func eventually(d time.Duration, message string, condition func() (bool, error)) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok, err := condition(); ok || err != nil {
			return err
		}
	}
	return errors.New(message)
}

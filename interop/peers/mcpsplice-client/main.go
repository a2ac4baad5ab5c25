// Command mcpsplice-client is a client made with this project's own package
// client. The variable INTEROP_MODE chooses legacy or auto.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/interop/peers/checks"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func main() {
	checks.Main(func(opts checks.Options, seen *checks.Seen) checks.Client {
		return &adapter{opts: opts, seen: seen}
	})
}

// An adapter implements checks.Client, checks.Healer and checks.PageOpener.
type adapter struct {
	// Set at construction.
	opts checks.Options
	seen *checks.Seen

	// Set by Connect.
	*client.Client
}

// OpensPages implements checks.PageOpener.
func (*adapter) OpensPages() {}

func (a *adapter) Connect(ctx context.Context) (server, version string, err error) {
	if a.Client, err = client.Connect(ctx, a.target(), a.options()); err != nil {
		return "", "", err
	}
	discover, err := a.Server(ctx)
	if err != nil {
		return "", "", err
	}
	var info mcp.Implementation
	if raw := discover.Meta[mcp.MetaServerInfo]; raw != nil {
		err = raw.Decode(&info)
	}
	return info.Name, string(a.Verdict().Revision), err
}

// pidFile is where a stdio server's process id is. The server is what the shell
// becomes.
const (
	pidFile  = "server.pid"
	startAll = `echo $$ >` + pidFile + `; exec "$0" "$@"`
)

func (a *adapter) target() client.Target {
	switch {
	case a.opts.SSE != "":
		return client.URL(a.opts.SSE)
	case a.opts.HTTP != "":
		return client.URL(a.opts.HTTP)
	}
	target := client.Command("sh", append([]string{"-c", startAll}, a.opts.Stdio...)...)
	target.Options.Stderr = os.Stderr
	return target
}

// options are what the client does when the server speaks first.
func (a *adapter) options() *client.Options {
	opts := &client.Options{
		Info:   mcp.Implementation{Name: "interop-mcpsplice", Version: "1.0.0"},
		Elicit: a.elicit, ElicitURL: true,
		Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{
				Role: mcp.Assistant, Model: "interop-model", StopReason: "endTurn",
				Content: mcp.Contents{&mcp.Text{Text: "sampled by the client"}},
			}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: a.opts.Profile.Root, Name: "interop"}}, nil
		},
		Log: func(params *mcp.LogParams) { a.seen.Log(string(params.Data)) },
		State: func(state client.State, err error) {
			fmt.Fprintln(os.Stderr, "state:", state, err)
		},
	}
	if a.opts.Legacy {
		opts.Era = mcp.Legacy
	}
	return opts
}

func (a *adapter) elicit(_ context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	answer := &mcp.ElicitResult{Action: mcp.ElicitAction(a.seen.Action())}
	if params.Mode != mcp.ElicitURL && answer.Action == mcp.Accept {
		answer.Content = mcp.JSON(`{"name":"Ada"}`)
	}
	return answer, nil
}

func (a *adapter) Tools(ctx context.Context) (names []string, all any, err error) {
	var tools []mcp.Tool
	for tool, err := range a.Client.Tools(ctx) {
		if err != nil {
			return nil, nil, err
		}
		tools = append(tools, tool)
		names = append(names, tool.Name)
	}
	all, err = mcp.NewJSON(tools)
	return names, all, err
}

func (a *adapter) Resources(ctx context.Context) (uris []string, err error) {
	for r, err := range a.Client.Resources(ctx) {
		if err != nil {
			return nil, err
		}
		uris = append(uris, r.URI)
	}
	return uris, nil
}

func (a *adapter) Prompts(ctx context.Context) (names []string, err error) {
	for p, err := range a.Client.Prompts(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, p.Name)
	}
	return names, nil
}

func (a *adapter) Call(ctx context.Context, tool string, args map[string]any, token string) (checks.Result, error) {
	opts := &client.CallOptions{}
	if token != "" {
		opts.Progress = func(p *mcp.ProgressParams) { a.seen.Progress(token, p.Progress) }
	}
	if args == nil {
		args = map[string]any{}
	}
	got, err := a.CallTool(ctx, tool, args, opts)
	if err != nil {
		return checks.Result{}, err
	}
	var b strings.Builder
	for _, content := range got.Content {
		if t, ok := content.(*mcp.Text); ok {
			b.WriteString(t.Text)
		}
	}
	result := checks.Result{Text: b.String(), Failed: got.Failed()}
	if got.StructuredContent != nil {
		result.Structured = json.RawMessage(got.StructuredContent)
	}
	return result, nil
}

func (a *adapter) Read(ctx context.Context, uri string) (text string, contents any, err error) {
	result, err := a.ReadResource(ctx, uri, nil)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	for _, content := range result.Contents {
		if content.Text != nil {
			b.WriteString(*content.Text)
		}
	}
	contents, err = mcp.NewJSON(result.Contents)
	return b.String(), contents, err
}

func (a *adapter) Prompt(ctx context.Context, name string, args map[string]string) (messages any, err error) {
	result, err := a.GetPrompt(ctx, name, args, nil)
	if err != nil {
		return nil, err
	}
	return mcp.NewJSON(result.Messages)
}

func (a *adapter) Complete(ctx context.Context, prompt, argument, value string) ([]string, error) {
	completion, err := a.Client.Complete(ctx, &mcp.CompleteParams{
		Ref:      mcp.Reference{Type: mcp.RefPrompt, Name: prompt},
		Argument: mcp.CompleteArgument{Name: argument, Value: value},
	}, nil)
	if err != nil {
		return nil, err
	}
	return completion.Values, nil
}

func (a *adapter) SetLevel(_ context.Context, level string) error {
	return a.SetLogLevel(mcp.Level(level))
}

func (a *adapter) Subscribe(ctx context.Context, uri string) (stop func() error, err error) {
	return a.listen(ctx, mcp.Filter{ResourceSubscriptions: []string{uri}})
}

func (a *adapter) Listen(ctx context.Context, kind string) (stop func() error, err error) {
	return a.listen(ctx, mcp.Filter{ToolsListChanged: kind == "tools", ResourcesListChanged: kind == "resources"})
}

// listen takes events until stop is called. That nothing more came before is an
// error of stop.
func (a *adapter) listen(ctx context.Context, filter mcp.Filter) (stop func() error, err error) {
	s, err := a.Client.Listen(ctx, filter)
	if err != nil {
		return nil, err
	}
	stopped, cancel := context.WithCancel(context.Background())
	broken := make(chan error, 1)
	go func() {
		for {
			e, err := s.Next(stopped)
			if err != nil {
				broken <- err
				return
			}
			a.happened(&e)
		}
	}()
	return func() error {
		cancel()
		err := <-broken
		s.Close()
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return fmt.Errorf("listening: %w", err)
	}, nil
}

func (a *adapter) happened(e *client.Event) {
	switch e.Method {
	case mcp.NotificationResourceUpdated:
		a.seen.Updated(e.URI())
	case mcp.NotificationToolsListChanged:
		a.seen.Changed("tools")
	case mcp.NotificationResourcesListChanged:
		a.seen.Changed("resources")
	case client.Resynced:
		a.seen.Resynced()
	}
}

func (a *adapter) Refused(err error) (text string, code int, ok bool) {
	if !jsonrpc.FromPeer(err) {
		return "", 0, false
	}
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return "", 0, false
	}
	return wire.Message, int(wire.Code), true
}

// Kill implements checks.Healer.
func (a *adapter) Kill() error {
	if a.opts.Stdio == nil {
		checks.RestartServer()
		return nil
	}
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Outcome implements checks.Healer.
func (a *adapter) Outcome(err error) string {
	failed, ok := errors.AsType[*mcp.CallError](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s, %s", failed.Kind, failed.Outcome)
}

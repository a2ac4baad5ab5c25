package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A puppet is a fixture with tools of any name that do what a test tells them.
type puppet struct {
	*fixture

	mu    sync.Mutex
	tools map[string]*puppetTool
}

type puppetTool struct {
	began chan struct{}
	steps chan func(context.Context, mcp.Caller)
}

func newPuppet() *puppet { return &puppet{fixture: newFixture(), tools: make(map[string]*puppetTool)} }

func (p *puppet) tool(name string) *puppetTool {
	p.mu.Lock()
	defer p.mu.Unlock()
	tool := p.tools[name]
	if tool == nil {
		tool = &puppetTool{began: make(chan struct{}, 1), steps: make(chan func(context.Context, mcp.Caller))}
		p.tools[name] = tool
	}
	return tool
}

func (p *puppet) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method != mcp.MethodCallTool {
		return p.fixture.Handle(ctx, req, caller)
	}
	name, _ := req.Params.LookupString("name")
	tool := p.tool(name)
	tool.began <- struct{}{}
	for {
		select {
		case step, more := <-tool.steps:
			if !more {
				return raw(`{"content":[],"of":"` + name + `"}`)
			}
			step(ctx, caller)
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		}
	}
}

// do has a tool take a step, and returns when that is done.
func (p *puppet) do(t *testing.T, tool string, step func(context.Context, mcp.Caller)) {
	t.Helper()
	done := make(chan struct{})
	select {
	case p.tool(tool).steps <- func(ctx context.Context, caller mcp.Caller) {
		defer close(done)
		step(ctx, caller)
	}:
		await(t, done)
	case <-time.After(patience):
		t.Fatalf("the tool %s is not being called", tool)
	}
}

// notify has a tool send the nth notification.
func (p *puppet) notify(t *testing.T, tool string, n int) {
	t.Helper()
	p.do(t, tool, func(ctx context.Context, caller mcp.Caller) {
		if err := caller.Notify(ctx, &mcp.Notification{Method: "notifications/vendor/n", Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"n":"%s%d"}`, tool, n))}); err != nil {
			t.Errorf("notification %d of %s: %v", n, tool, err)
		}
	})
}

// release has a tool release its client.
func (p *puppet) release(t *testing.T, tool string, retry time.Duration) {
	t.Helper()
	p.do(t, tool, func(ctx context.Context, caller mcp.Caller) {
		if err := mcp.Release(ctx, caller, retry); err != nil {
			t.Errorf("releasing the client: %v", err)
		}
	})
}

// end has a tool return its result.
func (p *puppet) end(tool string) { close(p.tool(tool).steps) }

// call posts the call of a tool and returns its reply.
func (b *browser) call(t *testing.T, session, tool string, pairs ...string) *http.Response {
	t.Helper()
	return b.open(t, "POST", callOf(tool), legacyHeader(session, pairs...))
}

func callOf(tool string) string {
	return legacyRequest(`"`+tool+`"`, "tools/call", `{"name":"`+tool+`"}`)
}

// resume opens a stream again.
func (b *browser) resume(t *testing.T, session, lastID string, pairs ...string) *eventReader {
	t.Helper()
	resp := b.open(t, "GET", "", legacyHeader(session, append(pairs, "Last-Event-Id", lastID)...))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("resuming after %q is answered with %s", lastID, resp.Status)
	}
	return readEvents(resp)
}

// numbered takes the next message, and checks that it is the nth notification of a
// tool. It returns the event's id.
func (r *eventReader) numbered(t *testing.T, tool string, n int) (id string) {
	t.Helper()
	return r.message(t, fmt.Sprintf(`"method":"notifications/vendor/n","params":{"n":"%s%d"}}`, tool, n))
}

// result takes the next message, and checks that it is the result of a tool.
func (r *eventReader) result(t *testing.T, tool string) {
	t.Helper()
	r.message(t, `"id":"`+tool+`","result":{"content":[],"of":"`+tool+`"}`)
}

var eventID = regexp.MustCompile(`^event: message\|id: ([\x21-\x7e]+)\|data: .`)

var firstID = regexp.MustCompile(`(?m)^id: (\S+)$`)

// message takes the next message, and checks that it has an id and holds text.
func (r *eventReader) message(t *testing.T, text string) (id string) {
	t.Helper()
	for {
		got, ok := r.next()
		if ok && (strings.HasPrefix(got, ":") || priming.MatchString(got)) {
			continue
		}
		match := eventID.FindStringSubmatch(got)
		if !ok || match == nil || !strings.Contains(got, text) {
			t.Fatalf("the next event is %q, %v, want one with an id and %s", got, ok, text)
		}
		return match[1]
	}
}

// puppeteer serves a puppet.
func puppeteer(t *testing.T, opts *streamable.ServerOptions) (*puppet, *browser) {
	t.Helper()
	p := newPuppet()
	return p, serving(t, p, opts)
}

package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// logged is a log of the server itself.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var incidents = regexp.MustCompile(`^Internal error \(incident ([A-Z2-7]{8})\)$`)

// hasIncident checks that the client is told no more of err than a number, under
// which the log gives the reason.
func (l *logged) hasIncident(t *testing.T, err error, reason string) {
	t.Helper()
	if err == nil {
		t.Fatal("the call succeeded")
	}
	wire := jsonrpc.ToWire(err)
	told := incidents.FindStringSubmatch(wire.Message)
	if wire.Code != jsonrpc.CodeInternalError || told == nil || !wire.Data.IsZero() {
		t.Fatalf("the client is told %v (%v)", wire, err)
	}
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "incident="+told[1]) && strings.Contains(line, reason) && strings.Contains(line, "id=7") {
			return
		}
	}
	t.Errorf("the log does not say %q for the incident %s:\n%s", reason, told[1], l)
}

// A client is a caller that keeps the notifications it gets, and answers
// questions.
type client struct {
	answer func(req *mcp.Request) (string, error)

	mu    sync.Mutex
	got   []string
	asked []string
}

func (c *client) Notify(_ context.Context, n *mcp.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, n.Method+" "+string(n.Params.Raw()))
	return nil
}

func (c *client) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	c.mu.Lock()
	c.asked = append(c.asked, req.Method+" "+string(req.Params.Raw()))
	c.mu.Unlock()
	if c.answer == nil {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	raw, err := c.answer(req)
	return mcp.RawResult([]byte(raw)), err
}

// within runs f within a call of a tool.
func within(t *testing.T, c mcp.Caller, meta mcp.Metadata, f func(ctx context.Context, call *server.Call)) {
	t.Helper()
	s := newServer(nil)
	s.AddTool(mcp.Tool{Name: "t"}, func(ctx context.Context, call *server.Call) (mcp.Result, error) {
		f(ctx, call)
		return mcp.Result{}, nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	if meta.Revision == "" {
		meta.Revision = mcp.NewestModern
	}
	req.Meta = meta
	if _, err := s.Handle(t.Context(), req, c); err != nil {
		t.Fatal(err)
	}
}

func TestLogMessagesOfTheLevelsThatTheClientWants(t *testing.T) {
	levels := []mcp.Level{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	tests := []struct {
		meta mcp.Metadata
		from mcp.Level // the least severe that comes; empty for none
	}{
		{mcp.Metadata{}, ""},
		{mcp.Metadata{LogLevel: "debug"}, "debug"},
		{mcp.Metadata{LogLevel: "warning"}, "warning"},
		{mcp.Metadata{LogLevel: "emergency"}, "emergency"},
		{mcp.Metadata{Revision: mcp.NewestLegacy}, "info"},
		{mcp.Metadata{Revision: mcp.NewestLegacy, LogLevel: "error"}, "error"},
	}
	for _, test := range tests {
		var c client
		within(t, &c, test.meta, func(ctx context.Context, call *server.Call) {
			for _, level := range levels {
				if err := call.Log(ctx, level, "part", "x"); err != nil {
					t.Error(err)
				}
			}
			if err := call.Log(ctx, "loud", "", "x"); err == nil {
				t.Error("a level that is none is taken")
			}
		})
		var want []string
		for _, level := range levels {
			if test.from.Includes(level) {
				want = append(want, fmt.Sprintf(`notifications/message {"level":"%s","logger":"part","data":"x"}`, level))
			}
		}
		if strings.Join(c.got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%+v: got %q", test.meta, c.got)
		}
	}
}

type point struct{ X int }

func TestLoggerSendsRecordsAsObjects(t *testing.T) {
	var c client
	within(t, &c, mcp.Metadata{LogLevel: "debug"}, func(_ context.Context, call *server.Call) {
		log := call.Logger("part")
		log.Debug("a")
		log.Info("b", "n", 1, "s", "x\xff", "f", 1.5, "bad", math.Inf(1), "e", errors.New("oh"), "p", point{3}, "nil", nil, "u", uint64(1<<63), "ok", true)
		log.With("w", 1).WithGroup("").WithGroup("g").With("v", 2).Warn("c", "x", 1, slog.Group("h", "y", 2), slog.Group("", "z", 3), slog.Attr{})
		log.Error("d", "c", make(chan int))
		log.Log(t.Context(), slog.LevelInfo+1, "f")
	})
	want := []string{
		`notifications/message {"level":"debug","logger":"part","data":{"msg":"a"}}`,
		`notifications/message {"level":"info","logger":"part","data":{"bad":"+Inf","e":"oh","f":1.5,"msg":"b","n":1,"nil":null,"ok":true,"p":{"X":3},"s":"x` + "\ufffd" + `","u":9223372036854775808}}`,
		`notifications/message {"level":"warning","logger":"part","data":{"g.h.y":2,"g.v":2,"g.x":1,"g.z":3,"msg":"c","w":1}}`,
	}
	for i, line := range want {
		if i >= len(c.got) || c.got[i] != line {
			t.Fatalf("got  %q\nwant %q", c.got, line)
		}
	}
	if len(c.got) != 5 || !strings.Contains(c.got[3], `"level":"error"`) || !strings.Contains(c.got[4], `"level":"info"`) {
		t.Errorf("got %q", c.got)
	}
}

func TestLoggerOfAQuietClientIsDisabled(t *testing.T) {
	var c client
	within(t, &c, mcp.Metadata{LogLevel: "error"}, func(ctx context.Context, call *server.Call) {
		if log := call.Logger(""); log.Enabled(ctx, slog.LevelWarn) || !log.Enabled(ctx, slog.LevelError) {
			t.Error("the logger takes what the client does not want")
		}
	})
}

// stuck is a caller whose way back is full.
type stuck struct{ mcp.NoCaller }

func (stuck) Notify(ctx context.Context, _ *mcp.Notification) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestLoggerWaitsNoLongerThanTheCall(t *testing.T) {
	s := newServer(nil)
	ctx, cancel := context.WithCancel(t.Context())
	s.AddTool(mcp.Tool{Name: "t"}, func(_ context.Context, call *server.Call) (mcp.Result, error) {
		cancel()
		call.Logger("").Info("x") // without a context of its own
		return mcp.Result{}, nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	req.Meta.LogLevel = "debug"
	if _, err := s.Handle(ctx, req, stuck{}); err != nil {
		t.Error(err)
	}
}

package session_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// A slowOutlet keeps what is sent, and takes its time with cancellations.
type slowOutlet struct {
	mu   sync.Mutex
	sent []string
}

func (o *slowOutlet) Send(_ context.Context, frame []byte) error {
	if strings.Contains(string(frame), mcp.NotificationCancelled) {
		<-time.After(100 * time.Millisecond)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, string(frame))
	return nil
}

// all returns what was sent.
func (o *slowOutlet) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.sent, "\n")
}

// TestNothingOfATaskOutlivesItsCall: its question is taken back, and its listen call has
// ended, when the call returns, however that ends.
func TestNothingOfATaskOutlivesItsCall(t *testing.T) {
	for _, end := range []string{done, "cancelled"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listening := false
				s := &tasker{created: working, states: []string{asking(`"a":` + form), asking(`"a":` + form), end}}
				s.listen = func(ctx context.Context, caller mcp.Caller) error {
					listening = true
					defer func() { listening = false }()
					_ = caller.Notify(ctx, mcp.Filter{}.Acknowledge())
					<-ctx.Done()
					time.Sleep(50 * time.Millisecond)
					return ctx.Err()
				}
				server := session.NewServer(s, session.ServerOptions{})
				defer server.Close()
				if _, err := server.Handle(t.Context(), scan(t, initialize), nil); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if end == "cancelled" {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				out := new(slowOutlet)
				_, err := server.Handle(ctx, scan(t, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}`), out)
				if got := out.all(); (err == nil) != (end == done) || listening ||
					!strings.Contains(got, mcp.MethodElicit) || !strings.Contains(got, mcp.NotificationCancelled) {
					t.Errorf("%v; sent %s; it listens: %t", err, got, listening)
				}
			})
		})
	}
}

// TestTaskThatCannotBeLookedAtFromHere: what we say ourselves of a look is not the server's
// word about its task.
func TestTaskThatCannotBeLookedAtFromHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{created: working, states: []string{done, working, done, done}}
		s.get = func(n int) error {
			if n%2 == 1 {
				return jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy")
			}
			return nil
		}
		server, c := callTask(t, s, `{"name":"t"}`)
		if got := <-c.done; !strings.HasPrefix(got, `{"content":[]`) {
			t.Errorf("got %s", got)
		}
		server.Close()
	})
}

// TestCallersPanicEndsTheCall: whoever recovers it finds nothing running that belongs to
// the call, and nothing that waits for it.
func TestCallersPanicEndsTheCall(t *testing.T) {
	for _, created := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newSlowTask()
			c := toTasks(t, w.wire)
			l, r := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
			defer r.stop()
			recovered := make(chan any)
			go func() {
				defer func() { recovered <- recover() }()
				req := toolNamed(modernRev, "must", "")
				req.Meta.Session = "a"
				_, _ = c.Handle(t.Context(), req, panicking{})
			}()
			call := <-w.creating
			if created {
				answer(call, made)
				<-w.waiting
			}
			began := time.Now()
			c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, call.ID)), nil)
			if got := <-recovered; got != "no" || time.Since(began) > 0 {
				t.Errorf("created %t: recovered %v after %v", created, got, time.Since(began))
			}
			c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"another"}}`), nil)
			synctest.Wait()
			if got := l.told(); len(got) != 1 {
				t.Errorf("created %t: told %q", created, got)
			}
		})
	}
}

// A panicking caller is one whose code fails.
type panicking struct{ mcp.NoCaller }

func (panicking) Notify(context.Context, *mcp.Notification) error { panic("no") }

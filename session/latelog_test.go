package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// A racer is a client of a server that answers at once, and whose log messages come on
// a stream of their own.
type racer struct {
	*session.Client
	t    *testing.T
	wire *wire
}

// newRacer returns one in a bubble. Serve is the server's; nil for one that answers
// everything.
func newRacer(t *testing.T, discover string, overtaken func() bool, serve func(call *inflight.Call, method, params string)) *racer {
	t.Helper()
	w := newWire(func(call *inflight.Call, _, _ string) { answer(call, discover) })
	c := session.NewClient(w, &w.calls, session.ClientOptions{Overtaken: overtaken})
	if err := c.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve = serve
	t.Cleanup(func() {
		if n := w.calls.Len(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
	return &racer{c, t, w}
}

func always() bool { return true }

// log has a log message come outside calls.
func (r *racer) log(level string, n int) {
	r.t.Helper()
	r.Notified(scan(r.t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"data":%d}}`, level, n)), nil)
}

// logged is what a caller is told of a message of log.
func logged(level string, n int) string {
	return fmt.Sprintf(`notifications/message {"level":%q,"data":%d}`, level, n)
}

// timed makes a call and returns what came for it, and how long it took.
func (r *racer) timed(ctx context.Context, meta mcp.Metadata) (told []string, took time.Duration, err error) {
	r.t.Helper()
	l, began := newListener(), time.Now()
	_, err = r.Handle(ctx, toolCall(meta), l)
	return l.told(), time.Since(began), err
}

// logMeta is the metadata of a request of a modern client that wants log messages.
func logMeta(client string, level mcp.Level) mcp.Metadata {
	return mcp.Metadata{Revision: mcp.Revision20260728, Session: client, LogLevel: level}
}

// after does something later.
func after(wait time.Duration, f func()) { time.AfterFunc(wait, f) }

// TestLogMessageBehindItsResponseReachesTheCall: of a client that has no session to
// listen to. When no more comes, the wait is over.
func TestLogMessageBehindItsResponseReachesTheCall_B151(t *testing.T) {
	const soon = session.LateStep / 10
	for _, tt := range []struct {
		name   string
		meta   mcp.Metadata
		failed bool // the call, with an error of the server
		late   []time.Duration
		want   []string
		took   time.Duration
	}{
		{"one", logMeta("m", "info"), false, []time.Duration{soon}, []string{logged("info", 0)}, 2 * session.LateStep},
		{"before the wait", logMeta("m", "info"), false, []time.Duration{0}, []string{logged("info", 0)}, 2 * session.LateStep},
		{"of a call that fails", logMeta("m", "info"), true, []time.Duration{soon}, []string{logged("info", 0)}, 2 * session.LateStep},
		{"of a client that names no revision", mcp.Metadata{LogLevel: "debug"}, false, []time.Duration{soon}, []string{logged("info", 0)}, 2 * session.LateStep},
		{"two", logMeta("m", "info"), false, []time.Duration{soon, 2 * soon}, []string{logged("info", 0), logged("info", 1)}, 2 * session.LateStep},
		{"two, apart", logMeta("m", "info"), false, []time.Duration{soon, soon + session.LateStep}, []string{logged("info", 0), logged("info", 1)}, 3 * session.LateStep},
		{"the last", logMeta("m", "info"), false, []time.Duration{session.LateWait - soon}, []string{logged("info", 0)}, session.LateWait},
		{"none", logMeta("m", "info"), false, nil, nil, session.LateWait},
		{"too late", logMeta("m", "info"), false, []time.Duration{session.LateWait + soon}, nil, session.LateWait},
		{"not severe enough", logMeta("m", "error"), false, []time.Duration{soon}, nil, session.LateWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *racer
				r = newRacer(t, everything, always, func(call *inflight.Call, method, _ string) {
					if method != mcp.MethodCallTool {
						answer(call, "{}")
						return
					}
					if tt.failed {
						refuse(call, jsonrpc.CodeInvalidParams)
					} else {
						answer(call, "{}")
					}
					for i, wait := range tt.late {
						if wait == 0 {
							r.log("info", i)
							continue
						}
						after(wait, func() { r.log("info", i) })
					}
				})
				told, took, err := r.timed(t.Context(), tt.meta)
				if _, wire := errors.AsType[*jsonrpc.Error](err); wire != tt.failed {
					t.Errorf("it ends with %v", err)
				}
				if !slices.Equal(told, tt.want) || took != tt.took {
					t.Errorf("after %v, %q has come; want %q after %v", took, told, tt.want, tt.took)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// TestLogMessageJustBeforeTheResponse: what comes together with it has come, or is about
// to.
func TestLogMessageJustBeforeTheResponse_B151(t *testing.T) {
	const soon = session.LateStep / 10
	for _, tt := range []struct {
		name   string
		before time.Duration
		late   bool // another one
		took   time.Duration
	}{
		{"alone", soon, false, session.LateStep},
		{"and one behind it", soon, true, 2 * session.LateStep},
		{"long before", 2 * session.LateStep, false, session.LateWait},
		{"long before, and one behind it", 2 * session.LateStep, true, 2 * session.LateStep},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *racer
				r = newRacer(t, everything, always, func(call *inflight.Call, method, _ string) {
					if method != mcp.MethodCallTool {
						answer(call, "{}")
						return
					}
					r.log("info", 1)
					time.Sleep(tt.before)
					answer(call, "{}")
					if tt.late {
						after(soon, func() { r.log("info", 2) })
					}
				})
				want := []string{logged("info", 1)}
				if tt.late {
					want = append(want, logged("info", 2))
				}
				told, took, err := r.timed(t.Context(), logMeta("m", "debug"))
				if took -= tt.before; err != nil || !slices.Equal(told, want) || took != tt.took {
					t.Errorf("%v after the response, %q has come, %v; want %q after %v", took, told, err, want, tt.took)
				}
			})
		})
	}
}

// TestCallsThatWaitForNoLogMessage: those that want none, and those whom one that is
// late could not reach.
func TestCallsThatWaitForNoLogMessage_B151(t *testing.T) {
	silent := `{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}`
	for _, tt := range []struct {
		name      string
		meta      mcp.Metadata
		discover  string
		overtaken func() bool
		others    []mcp.Metadata // of calls in flight
		left      bool           // by another client, just before
	}{
		{name: "no level", meta: logMeta("m", "")},
		{name: "a legacy client, which has a session", meta: legacyMeta("l", "debug")},
		{name: "one stream for all", overtaken: nil},
		{name: "no stream outside calls", overtaken: func() bool { return false }},
		{name: "a server that does not log", discover: silent},
		{name: "another call of the client wants them", others: []mcp.Metadata{logMeta("m", "debug")}},
		{name: "another client's call wants them", others: []mcp.Metadata{logMeta("other", "debug")}},
		{name: "another client's call may be meant", others: []mcp.Metadata{logMeta("other", "")}},
		{name: "those of two may be", others: []mcp.Metadata{logMeta("other", ""), logMeta("third", "")}},
		{name: "a call that was left may be", left: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.meta.Revision == "" {
					tt.meta = logMeta("m", "info")
				}
				if tt.discover == "" {
					tt.discover = everything
				}
				if tt.overtaken == nil && tt.name != "one stream for all" {
					tt.overtaken = always
				}
				var holds atomic.Bool
				holds.Store(true)
				r := newRacer(t, tt.discover, tt.overtaken, func(call *inflight.Call, method, _ string) {
					if method != mcp.MethodCallTool || !holds.Load() {
						answer(call, "{}")
					}
				})
				for _, meta := range tt.others {
					handle(t, r, toolCall(meta), newListener())
				}
				if tt.left {
					handle(t, r, toolCall(logMeta("other", "")), newListener()).stop()
				}
				synctest.Wait()
				holds.Store(false)
				if _, took, err := r.timed(t.Context(), tt.meta); err != nil || took != 0 {
					t.Errorf("it took %v, %v", took, err)
				}
			})
		})
	}
}

// TestWaitForLogMessagesIsBounded: whatever comes.
func TestWaitForLogMessagesIsBounded_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRacer(t, everything, always, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(session.LateStep / 3)
				r.log("error", n)
			}
		}()
		if told, took, err := r.timed(t.Context(), logMeta("m", "debug")); err != nil || took != session.LateWait || len(told) == 0 {
			t.Errorf("it took %v, %v; %d messages came", took, err, len(told))
		}
		cancel()
		time.Sleep(time.Second)
	})
}

// TestWaitForLogMessagesEndsEarly: the result is there, whoever has gone meanwhile.
func TestWaitForLogMessagesEndsEarly_B136(t *testing.T) {
	const soon = session.LateStep / 2
	for _, tt := range []struct {
		name string
		end  func(r *racer, cancel context.CancelFunc)
	}{
		{"the call is cancelled", func(_ *racer, cancel context.CancelFunc) { cancel() }},
		{"the connection ends", func(r *racer, _ context.CancelFunc) { r.wire.calls.Fail(errors.New("over"), true) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRacer(t, everything, always, nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				after(soon, func() { tt.end(r, cancel) })
				if _, took, err := r.timed(ctx, logMeta("m", "debug")); err != nil || took != soon {
					t.Errorf("after %v: %v", took, err)
				}
				if got := r.wire.all(mcp.NotificationCancelled); len(got) > 0 {
					t.Errorf("the server is told %q", got)
				}
			})
		})
	}
}

// TestServerThatLogsNothingOutsideCallsIsNotWaitedFor: until it does.
func TestServerThatLogsNothingOutsideCallsIsNotWaitedFor_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRacer(t, everything, always, nil)
		expect := func(want time.Duration) {
			t.Helper()
			if _, took, err := r.timed(t.Context(), logMeta("m", "debug")); err != nil || took != want {
				t.Errorf("a call took %v, %v; want %v", took, err, want)
			}
		}
		for range session.MaxVain {
			expect(session.LateWait)
		}
		expect(0)
		r.log("debug", 0)
		for range 2 * session.MaxVain {
			expect(session.LateWait)
		}
	})
}

// TestCallThatWaitsGivesWayToAnotherClients: what comes then may be of the call that has
// begun, even if that is over as well.
func TestCallThatWaitsGivesWayToAnotherClients_B151(t *testing.T) {
	for _, tt := range []struct {
		name  string
		other mcp.Metadata // of a call that begins while the other one waits
		ends  bool         // at once
	}{
		{"in flight", logMeta("other", ""), false},
		{"over", logMeta("other", ""), true},
		{"waiting itself", logMeta("other", "debug"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var holds atomic.Bool
				r := newRacer(t, everything, always, func(call *inflight.Call, method, _ string) {
					if method != mcp.MethodCallTool || !holds.Load() {
						answer(call, "{}")
					}
				})
				first, second := newListener(), newListener()
				waiting := handle(t, r, toolCall(logMeta("m", "debug")), first)
				time.Sleep(session.LateStep / 3)
				holds.Store(!tt.ends)
				handle(t, r, toolCall(tt.other), second)
				synctest.Wait()
				select {
				case <-waiting.done:
				default:
					t.Error("it waits on")
				}
				r.log("error", 1)
				time.Sleep(time.Second)
				if got := first.told(); len(got) > 0 {
					t.Errorf("%q has come", got)
				}
			})
		})
	}
}

// TestQuestionIsNotPutOnACallThatWaits: its response has come.
func TestQuestionIsNotPutOnACallThatWaits_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRacer(t, everything, always, nil)
		caller := newListener()
		caller.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
			t.Error("it is asked")
			return mcp.Result{}, nil
		}
		handle(t, r, toolCall(logMeta("m", "debug")), caller)
		synctest.Wait()
		r.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`), nil)
		synctest.Wait()
		if got := r.wire.all("reply"); len(got) != 1 {
			t.Errorf("it is answered by %q", got)
		}
	})
}

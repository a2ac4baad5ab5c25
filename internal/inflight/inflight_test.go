package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A recorder is a caller that keeps what it is told.
type recorder struct {
	mu  sync.Mutex
	got []string // params
	ask func(ctx context.Context) error
}

func (r *recorder) Notify(_ context.Context, n *mcp.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, string(n.Params.Raw()))
	return nil
}

func (r *recorder) Ask(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, r.ask(ctx)
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func notification(method, params string) *mcp.Notification {
	return &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(params))}
}

var reply = &jsonrpc.Message{Kind: jsonrpc.Response, Body: jsonrpc.Trusted([]byte(`{}`))}

// TestNotificationsComeBeforeTheResponse_P5: and in their order.
func TestNotificationsComeBeforeTheResponse_P5(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, tool("a"))
	var want []string
	for i := range 100 {
		params := fmt.Sprintf(`{"progress":%d}`, i)
		want = append(want, params)
		call.Notify(notification(mcp.NotificationProgress, params))
	}
	call.Reply(reply)
	call.Notify(notification(mcp.NotificationProgress, `"after the response"`))
	var got recorder
	if _, err := call.Wait(t.Context(), &got, 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.all(), want) {
		t.Errorf("got %q", got.all())
	}
}

func TestInboxIsBounded_B140(t *testing.T) {
	message := func(i int) *mcp.Notification {
		return notification(mcp.NotificationMessage, fmt.Sprintf(`{"data":%d}`, i))
	}
	progress := func(i int) *mcp.Notification {
		return notification(mcp.NotificationProgress, fmt.Sprintf(`{"progress":%d}`, i))
	}
	large := func(i int) *mcp.Notification {
		return notification(mcp.NotificationMessage, fmt.Sprintf(`{"i":%d,"data":"%s"}`, i, strings.Repeat("x", inflight.MaxQueuedBytes/4)))
	}
	for _, tt := range []struct {
		name        string
		put         func(call *inflight.Call)
		kept        int
		dropped     int64
		first, last string // prefixes
	}{
		{"oldest progress first", func(call *inflight.Call) {
			call.Notify(message(0))
			for i := range 2 * inflight.MaxQueuedMessages {
				call.Notify(progress(i))
			}
		}, inflight.MaxQueuedMessages, inflight.MaxQueuedMessages + 1, `{"data":0}`, `{"progress":511}`},
		{"then the oldest", func(call *inflight.Call) {
			for i := range inflight.MaxQueuedMessages + 10 {
				call.Notify(message(i))
			}
		}, inflight.MaxQueuedMessages, 10, `{"data":10}`, `{"data":265}`},
		{"bytes", func(call *inflight.Call) {
			for i := range 6 {
				call.Notify(large(i))
			}
		}, 3, 3, `{"i":3`, `{"i":5`},
		{"bytes of their methods", func(call *inflight.Call) {
			for i := range 6 {
				call.Notify(notification(fmt.Sprintf("vendor/%d%s", i, strings.Repeat("x", inflight.MaxQueuedBytes/4)), fmt.Sprintf(`{"i":%d}`, i)))
			}
		}, 3, 3, `{"i":3`, `{"i":5`},
		{"a single one above the limit", func(call *inflight.Call) {
			call.Notify(message(0))
			call.Notify(notification(mcp.NotificationMessage, `"`+strings.Repeat("x", 2*inflight.MaxQueuedBytes)+`"`))
		}, 1, 1, `"xxx`, `"xxx`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls inflight.Calls
			call := start(t, &calls, tool("a"))
			tt.put(call)
			call.Reply(reply)
			var caller recorder
			if _, err := call.Wait(t.Context(), &caller, 0); err != nil {
				t.Fatal(err)
			}
			got := caller.all()
			if len(got) != tt.kept || calls.Dropped() != tt.dropped {
				t.Fatalf("%d kept, %d dropped", len(got), calls.Dropped())
			}
			if !strings.HasPrefix(got[0], tt.first) || !strings.HasPrefix(got[len(got)-1], tt.last) {
				t.Errorf("from %.20s to %.20s", got[0], got[len(got)-1])
			}
		})
	}
}

func TestListChangesAreCoalesced_R37_B043(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, &mcp.Request{Method: mcp.MethodListen})
	for range 1000 {
		call.Notify(notification(mcp.NotificationToolsListChanged, `"tools"`))
		call.Notify(notification(mcp.NotificationPromptsListChanged, `"prompts"`))
		call.Notify(notification(mcp.NotificationResourcesListChanged, `"resources"`))
	}
	call.Notify(notification(mcp.NotificationResourceUpdated, `1`))
	call.Notify(notification(mcp.NotificationResourceUpdated, `2`))
	call.Finish(nil)
	var got recorder
	if _, err := call.Wait(t.Context(), &got, 0); err != nil {
		t.Fatal(err)
	}
	if want := []string{`"tools"`, `"prompts"`, `"resources"`, `1`, `2`}; !slices.Equal(got.all(), want) {
		t.Errorf("got %q", got.all())
	}
}

func TestAResponseThatHasComeWins_B136(t *testing.T) {
	var calls inflight.Calls
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		call := start(t, &calls, tool("a"))
		call.Reply(reply)
		if _, err := call.Wait(ctx, mcp.NoCaller{}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWaitTellsTheCause(t *testing.T) {
	var calls inflight.Calls
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := start(t, &calls, tool("a")).Wait(ctx, mcp.NoCaller{}, 0); !errors.Is(err, why) {
		t.Errorf("err %v", err)
	}
}

// TestHardMaximumDespiteProgress_B140: progress keeps no call alive for ever.
func TestHardMaximumDespiteProgress_B140(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls inflight.Calls
		call := start(t, &calls, tool("a"))
		stop := make(chan struct{})
		go func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					call.Notify(notification(mcp.NotificationProgress, "{}"))
				case <-stop:
					return
				}
			}
		}()
		began := time.Now()
		_, err := call.Wait(t.Context(), mcp.NoCaller{}, 4*time.Second)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 4*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		close(stop)
	})
}

// TestClockStandsStillForQuestions: while one is open, and goes on afterwards.
func TestClockStandsStillForQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls inflight.Calls
		call := start(t, &calls, tool("a"))
		caller := &recorder{ask: func(ctx context.Context) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		}}
		ask := func() {
			if !call.Ask(1, func(ctx context.Context, c mcp.Caller) {
				if _, err := c.Ask(ctx, nil); err != nil {
					t.Error(err)
				}
			}) {
				t.Error("no room")
			}
		}
		began := time.Now()
		time.AfterFunc(3*time.Second, ask)
		time.AfterFunc(3*time.Second+30*time.Minute, ask) // a second one overlaps
		_, err := call.Wait(t.Context(), caller, 5*time.Second)
		want := 5*time.Second + 90*time.Minute
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != want {
			t.Errorf("%v after %v, want %v", err, took, want)
		}
	})
}

func TestQuestionsEndWithTheCall(t *testing.T) {
	for _, how := range []string{"response", "context"} {
		t.Run(how, func(t *testing.T) {
			var calls inflight.Calls
			call := start(t, &calls, tool("a"))
			asking, ended := make(chan struct{}), make(chan error, 1)
			call.Ask(1, func(ctx context.Context, _ mcp.Caller) {
				close(asking)
				<-ctx.Done()
				ended <- ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asking
				if how == "response" {
					call.Reply(reply)
				}
				cancel()
			}()
			_, _ = call.Wait(ctx, mcp.NoCaller{}, 0)
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the question's context had not ended")
				}
			default:
				t.Error("Wait returned before the question had ended")
			}
		})
	}
}

func TestQuestionsThatWereNeverPutAreTold(t *testing.T) {
	var calls inflight.Calls
	call, err := calls.Start(tool("a"))
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	if !call.Ask(1, func(ctx context.Context, caller mcp.Caller) {
		_, err := caller.Ask(ctx, nil)
		told <- errors.Join(err, ctx.Err())
	}) {
		t.Fatal("no room")
	}
	call.End() // the request could not be sent
	select {
	case err := <-told:
		if !errors.Is(err, mcp.ErrCannotAsk) || !errors.Is(err, context.Canceled) {
			t.Errorf("told %v", err)
		}
	default:
		t.Error("nobody was told")
	}
	if call.Ask(1, func(context.Context, mcp.Caller) { t.Error("asked after the end") }) {
		t.Error("a question was taken after the end")
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	var calls inflight.Calls
	nothing := func(context.Context, mcp.Caller) {}
	count := func(size int) (n int) {
		call, err := calls.Start(tool("a"))
		if err != nil {
			t.Fatal(err)
		}
		defer call.End()
		for call.Ask(size, nothing) {
			n++
		}
		return n
	}
	if n := count(1); n != inflight.MaxQueuedMessages {
		t.Errorf("%d small questions", n)
	}
	if n := count(inflight.MaxQueuedBytes / 2); n != 2 {
		t.Errorf("%d large questions", n)
	}
	if n := count(2 * inflight.MaxQueuedBytes); n != 1 {
		t.Errorf("%d very large questions", n)
	}
}

// A scriptedReader is read by calls that read for themselves.
type scriptedReader struct {
	free          bool
	reads         []func() // what each read brings; nil is the end of reading
	taken, passed int
}

func (r *scriptedReader) Take() bool {
	if r.free {
		r.taken++
	}
	return r.free
}

func (r *scriptedReader) Read() bool {
	next := r.reads[0]
	r.reads = r.reads[1:]
	if next == nil {
		return false
	}
	next()
	return true
}

func (r *scriptedReader) Pass() { r.passed++ }

func TestCallThatReadsForItself(t *testing.T) {
	progress := notification(mcp.NotificationProgress, `{"progress":1}`)
	for _, tt := range []struct {
		name  string
		free  bool
		reads func(call, other *inflight.Call) []func()
		told  int // notifications
		left  int // reads
	}{
		{"nobody else may read", false, func(call, _ *inflight.Call) []func() {
			go call.Reply(reply)
			return []func(){nil}
		}, 0, 1},
		{"its response comes", true, func(call, _ *inflight.Call) []func() {
			return []func(){func() { call.Reply(reply) }, nil}
		}, 0, 1},
		{"others come first", true, func(call, other *inflight.Call) []func() {
			return []func(){func() { other.Reply(reply) }, func() {}, func() { call.Reply(reply) }}
		}, 0, 0},
		{"it is told something, and reads no more", true, func(call, _ *inflight.Call) []func() {
			return []func(){func() { call.Notify(progress); go call.Reply(reply) }, nil}
		}, 1, 1},
		{"it is told something before", true, func(call, _ *inflight.Call) []func() {
			call.Notify(progress)
			go call.Reply(reply)
			return []func(){nil}
		}, 1, 1},
		{"reading ends", true, func(call, _ *inflight.Call) []func() {
			time.AfterFunc(time.Millisecond, func() { call.Reply(reply) })
			return []func(){func() {}, nil}
		}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls inflight.Calls
				call, other := start(t, &calls, tool("a")), start(t, &calls, tool("b"))
				r := &scriptedReader{free: tt.free, reads: tt.reads(call, other)}
				var got recorder
				m, err := call.WaitReading(t.Context(), &got, 0, r)
				if err != nil || string(m.Body.Raw()) != "{}" {
					t.Errorf("got %+v, %v", m, err)
				}
				if len(got.all()) != tt.told || len(r.reads) != tt.left || r.taken != r.passed {
					t.Errorf("told %q; %d reads left; taken %d times, passed %d times", got.all(), len(r.reads), r.taken, r.passed)
				}
			})
		})
	}
}

func TestCallThatHasBeenGivenUpDoesNotRead(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, tool("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &scriptedReader{free: true}
	if _, err := call.WaitReading(ctx, mcp.NoCaller{}, 0, r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r.taken != 0 {
		t.Error("it took the right to read")
	}
}

func TestPendingCallsAreCounted(t *testing.T) {
	var calls inflight.Calls
	a, b := start(t, &calls, tool("a")), start(t, &calls, tool("b"))
	start(t, &calls, &mcp.Request{Method: mcp.MethodListen})
	if n := calls.Pending(); n != 2 {
		t.Errorf("%d are pending", n)
	}
	a.Reply(reply)
	a.Finish(errors.New("late"))
	a.End()
	if n := calls.Pending(); n != 1 {
		t.Errorf("%d are pending after a response", n)
	}
	b.End()
	if n := calls.Pending(); n != 0 {
		t.Errorf("%d are pending at the end", n)
	}
}

// TestWhenNewsComes: whoever is busy with a call learns of whatever comes for it, also
// of what has come before, until it wants no more.
func TestWhenNewsComes(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, tool("a"))
	n := 0
	if call.WhenNews(func() { n++ }) {
		t.Error("there is news of a call that nothing has come for")
	}
	call.Notify(&mcp.Notification{Method: mcp.NotificationMessage})
	call.Ask(1, func(context.Context, mcp.Caller) {})
	if n != 2 {
		t.Errorf("%d times, of 2", n)
	}
	if !call.WhenNews(nil) {
		t.Error("what has come is not known")
	}
	call.Finish(nil)
	if n != 2 {
		t.Errorf("%d times, though it was not wanted any more", n)
	}
}

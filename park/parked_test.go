package park_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

// withToken returns a request that wants progress.
func withToken(req *mcp.Request, token string) *mcp.Request {
	again := *req
	again.Meta.ProgressToken, _ = jsonrpc.RawID([]byte(token))
	return &again
}

// TestMessagesWhileParkedComeWithTheRetry: in order, before what follows, under
// the retry's token.
func TestMessagesWhileParkedComeWithTheRetry_B139(t *testing.T) {
	talk := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		progress(ctx, caller, `"first"`, 1)
		asked := make(chan string, 1)
		go func() {
			answer, _ := elicit(ctx, caller, "?")
			asked <- answer
		}()
		<-time.After(time.Second)
		progress(ctx, caller, `"first"`, 2)
		logged(ctx, caller, "held")
		answer := <-asked
		progress(ctx, caller, `"first"`, 3)
		logged(ctx, caller, "late")
		return result(answer)
	}
	const held, late = `notifications/message {"level":"info","data":"held"}`, `notifications/message {"level":"info","data":"late"}`
	for _, tt := range []struct{ name, token, want string }{
		{"another token", `7`, "notifications/progress {\"progressToken\":7,\"progress\":2}\n" + held +
			"\nnotifications/progress {\"progressToken\":7,\"progress\":3}\n" + late},
		{"no token", ``, held + "\n" + late},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, talk, park.Options{}, func(t *testing.T, lot *park.Lot) {
				first := do(t.Context(), lot, withToken(greeting, `"first"`))
				if got := first.heard(); got != `notifications/progress {"progressToken":"first","progress":1}` {
					t.Errorf("before the question: %s", got)
				}
				<-time.After(time.Minute)
				second := do(t.Context(), lot, withToken(retry(greeting, first.state(t), `{"q1":{}}`), tt.token))
				if got := second.heard(); got != tt.want || second.String() != `{"text":{}}` {
					t.Errorf("got %v after\n%s\nwant\n%s", second, got, tt.want)
				}
				if strings.Count(first.heard(), "\n") > 0 {
					t.Errorf("the first exchange was told %s", first.heard())
				}
			})
		})
	}
}

// TestNothingOvertakesWhatIsHeld: neither what comes while it is being sent, nor
// the outcome; and the way back is not used when the exchange is over.
func TestNothingOvertakesWhatIsHeld(t *testing.T) {
	talk := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		asked := make(chan string)
		go func() {
			answer, _ := elicit(ctx, caller, "?")
			asked <- answer
		}()
		<-time.After(time.Second)
		logged(ctx, caller, "1")
		logged(ctx, caller, "2")
		<-asked
		<-time.After(time.Second)
		logged(ctx, caller, "3")
		// Beside the next question, which ends the exchange meanwhile.
		<-time.After(time.Minute)
		go logged(ctx, caller, "4")
		<-time.After(time.Second)
		answer, err := elicit(ctx, caller, "?")
		if err != nil {
			return mcp.Result{}, err
		}
		return result(answer)
	}
	bubble(t, talk, park.Options{}, func(t *testing.T, lot *park.Lot) {
		o := do(t.Context(), lot, greeting)
		<-time.After(time.Minute)
		o = doSlowly(t.Context(), lot, retry(greeting, o.state(t), `{"q1":{}}`), 10*time.Second)
		o.mu.Lock()
		busy := o.busy
		o.mu.Unlock()
		var got []string
		for line := range strings.SplitSeq(o.heard(), "\n") {
			got = append(got, line[len(line)-3:len(line)-2])
		}
		if strings.Join(got, "") != "1234" || busy > 0 {
			t.Errorf("heard %q, %d are being sent", got, busy)
		}
		if o = do(t.Context(), lot, retry(greeting, o.state(t), `{"q2":{}}`)); o.String() != `{"text":{}}` {
			t.Errorf("got %v", o)
		}
	})
}

func TestHeldMessagesAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name     string
		progress int
		logs     int
		size     int
		method   int    // bytes that the name of each log message's method has more
		want     string // the first and the last message, and how many
	}{
		{"progress first", 300, 100, 1, 0, "156 progress, 100 logs"},
		{"then the oldest", 0, 300, 1, 0, "0 progress, 256 logs"},
		{"bytes", 10, 20, 100_000, 0, "0 progress, 10 logs"},
		{"bytes of methods", 10, 20, 1, 100_000, "0 progress, 10 logs"},
		{"a single large one", 1, 1, 2 << 20, 0, "0 progress, 1 logs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			talk := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				go func() {
					<-time.After(time.Second)
					for i := range tt.progress {
						progress(ctx, caller, `1`, i)
					}
					for range tt.logs {
						loggedAs(ctx, caller, mcp.NotificationMessage+strings.Repeat("x", tt.method), strings.Repeat("x", tt.size))
					}
				}()
				answer, err := elicit(ctx, caller, "?")
				if err != nil {
					return mcp.Result{}, err
				}
				return result(answer)
			}
			bubble(t, talk, park.Options{}, func(t *testing.T, lot *park.Lot) {
				first := do(t.Context(), lot, withToken(greeting, `1`))
				<-time.After(time.Minute)
				second := do(t.Context(), lot, withToken(retry(greeting, first.state(t), `{"q1":{}}`), `1`))
				got := fmt.Sprintf("%d progress, %d logs", strings.Count(second.heard(), "/progress "), strings.Count(second.heard(), "/message"))
				if got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if want := int64(tt.progress + tt.logs - len(second.told)); lot.Dropped() != want {
					t.Errorf("%d were counted as dropped, want %d", lot.Dropped(), want)
				}
			})
		})
	}
}

// TestOutcomeWhileParkedIsKept: the server takes its question back, and ends the
// call with a result or a failure.
func TestOutcomeWhileParkedIsKept(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			withdraw := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				asking, cancel := context.WithTimeoutCause(ctx, time.Second, errors.New("withdrawn"))
				defer cancel()
				if _, err := elicit(asking, caller, "?"); err == nil || err.Error() != "withdrawn" {
					t.Errorf("the question gives %v", err)
				}
				logged(ctx, caller, "over")
				if fails {
					return mcp.Result{}, jsonrpc.Errorf(7, "no")
				}
				return result(`1`)
			}
			want := map[bool]string{false: `{"text":1}`, true: "error 7: no (7)"}[fails]
			bubble(t, withdraw, park.Options{}, func(t *testing.T, lot *park.Lot) {
				first := do(t.Context(), lot, greeting)
				<-time.After(park.DefaultLife - time.Second)
				if n := lot.Len(); n != 1 {
					t.Errorf("%d calls are parked", n)
				}
				second := do(t.Context(), lot, retry(greeting, first.state(t), `{"q1":{"action":"accept"}}`))
				if second.String() != want || second.heard() != `notifications/message {"level":"info","data":"over"}` {
					t.Errorf("got %v after %s", second, second.heard())
				}
				// Nobody fetches this one.
				do(t.Context(), lot, greeting)
				<-time.After(park.DefaultLife)
				synctest.Wait()
				if n := lot.Len(); n != 0 {
					t.Errorf("%d calls are parked", n)
				}
			})
		})
	}
}

// TestLifeCountsFromEachQuestion: its end cancels the call.
func TestLifeCountsFromEachQuestion(t *testing.T) {
	causes := make(chan error, 1)
	ask3 := func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		for range 3 {
			if _, err := elicit(ctx, caller, "?"); err != nil {
				causes <- context.Cause(ctx)
				return mcp.Result{}, err
			}
		}
		return result(`3`)
	}
	bubble(t, ask3, park.Options{Life: time.Minute}, func(t *testing.T, lot *park.Lot) {
		o := do(t.Context(), lot, greeting)
		for _, key := range []string{"q1", "q2"} {
			<-time.After(time.Minute - 1)
			o = do(t.Context(), lot, retry(greeting, o.state(t), `{"`+key+`":{}}`))
		}
		<-time.After(time.Minute - 1)
		if len(causes) > 0 {
			t.Error("the call was cancelled early")
		}
		<-time.After(1)
		synctest.Wait()
		var call *mcp.CallError
		// A CallError would be taken for the connection's.
		if err := <-causes; !errors.Is(err, park.ErrExpired) || !strings.Contains(err.Error(), "Life of 1m0s") || errors.As(err, &call) {
			t.Errorf("the cause is %v", err)
		}
		if got := do(t.Context(), lot, retry(greeting, o.state(t), `{"q3":{}}`)).String(); !strings.Contains(got, "has expired") {
			t.Error(got)
		}
	})
}

// TestCapabilitiesOfARetry count from then on, and outlive its memory.
func TestCapabilitiesOfARetry(t *testing.T) {
	twice := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if _, err := elicit(ctx, caller, "?"); err != nil {
			return mcp.Result{}, err
		}
		<-time.After(time.Second)
		answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodListRoots})
		if err != nil {
			return mcp.Result{}, err
		}
		return result(string(answer.Raw()))
	}
	bubble(t, twice, park.Options{}, func(t *testing.T, lot *park.Lot) {
		plain := *greeting
		plain.Meta.Capabilities = []byte(`{"elicitation":{}}`)
		first := do(t.Context(), lot, &plain)
		again := retry(&plain, first.state(t), `{"q1":{}}`)
		again.Meta.Capabilities = []byte(`{"elicitation":{},"roots":{}}`)
		second := start(t.Context(), lot, again)
		synctest.Wait()
		clear(again.Meta.Capabilities)
		if got := (<-second).questions(); got != `{"q2":{"method":"roots/list","params":{}}}` {
			t.Errorf("asked %s", got)
		}
	})
}

func TestParkedCallsAreBounded(t *testing.T) {
	bubble(t, greet, park.Options{MaxParked: 3, MaxParkedPerPrincipal: 2}, func(t *testing.T, lot *park.Lot) {
		request := func(subject string) *mcp.Request { return of(tool(`{"name":"greet"}`), "i", subject) }
		limited := func(subject, limit string) {
			t.Helper()
			o := do(t.Context(), lot, request(subject))
			if e, ok := errors.AsType[*mcp.CallError](o.err); !ok || e.Kind != mcp.LimitExceeded || e.Limit != limit {
				t.Errorf("%s: %v", subject, o)
			}
		}
		a := do(t.Context(), lot, request("a"))
		a.state(t)
		do(t.Context(), lot, request("a")).state(t)
		limited("a", "MaxParkedPerPrincipal")
		do(t.Context(), lot, request("b")).state(t)
		limited("b", "MaxParked")
		// An answered call makes room.
		if o := do(t.Context(), lot, retry(request("a"), a.state(t), `{"q1":{}}`)); o.err != nil {
			t.Error(o)
		}
		for range 5 {
			another := do(t.Context(), lot, request("a"))
			do(t.Context(), lot, retry(request("a"), another.state(t), `{"q1":{}}`))
		}
		do(t.Context(), lot, request("c")).state(t)
		limited("d", "MaxParked")
		<-time.After(park.DefaultLife)
		synctest.Wait()
		do(t.Context(), lot, request("d")).state(t)
	})
}

func TestOneCallsQuestionsAreBounded(t *testing.T) {
	failed := make(chan error, 2000)
	many := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		for i := range park.MaxQuestions + 1 {
			go func() {
				if _, err := elicit(ctx, caller, fmt.Sprint(i)); ctx.Err() == nil {
					failed <- err
				}
			}()
		}
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}
	bubble(t, many, park.Options{}, func(t *testing.T, lot *park.Lot) {
		do(t.Context(), lot, greeting).state(t)
		synctest.Wait()
		if e, ok := errors.AsType[*mcp.CallError](<-failed); !ok || e.Limit != "MaxQuestions" || len(failed) > 0 {
			t.Errorf("got %v, and %d more", e, len(failed))
		}
	})
}

// TestClientThatLeaves_B122: before the question, or the answer to a retry, it
// has cancelled; in between it has not.
func TestClientThatLeaves_B122(t *testing.T) {
	type step int
	const (
		working step = iota
		parked
		answered
	)
	for _, at := range []step{working, parked, answered} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			gone := errors.New("gone")
			ended := make(chan error, 1)
			work := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				defer func() { ended <- context.Cause(ctx) }()
				wait := func() {
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
				wait()
				if _, err := elicit(ctx, caller, "?"); err != nil {
					return mcp.Result{}, err
				}
				wait()
				return result(`1`)
			}
			bubble(t, work, park.Options{}, func(t *testing.T, lot *park.Lot) {
				ctx, leave := context.WithCancelCause(t.Context())
				first := start(ctx, lot, greeting)
				synctest.Wait()
				if at == working {
					leave(gone)
					if o := <-first; !errors.Is(o.err, gone) || !errors.Is(<-ended, gone) {
						t.Errorf("got %v", o)
					}
					return
				}
				o := <-first
				leave(gone)
				synctest.Wait()
				if len(ended) > 0 {
					t.Error("the parked call was cancelled")
				}
				again, leave := context.WithCancelCause(t.Context())
				defer leave(nil)
				second := start(again, lot, retry(greeting, o.state(t), `{"q1":{}}`))
				synctest.Wait()
				if at == answered {
					leave(gone)
					<-second
					if err := <-ended; !errors.Is(err, gone) {
						t.Errorf("the cause is %v", err)
					}
					return
				}
				if o := <-second; o.String() != `{"text":1}` {
					t.Errorf("got %v", o)
				}
			})
		})
	}
}

// TestWhoHasLeftIsNotWaitedFor: a client that leaves at the moment of the
// question has no state to come back with.
func TestWhoHasLeftIsNotWaitedFor(t *testing.T) {
	for range 100 { // whether the end or the question is seen first is a matter of luck
		ctx, leave := context.WithCancel(t.Context())
		ask := func(hctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			leave()
			_, err := elicit(hctx, caller, "?")
			return mcp.Result{}, err
		}
		bubble(t, ask, park.Options{}, func(t *testing.T, lot *park.Lot) {
			do(ctx, lot, greeting)
			synctest.Wait()
			if n := lot.Len(); n != 0 {
				t.Errorf("%d calls are parked", n)
			}
		})
	}
}

// TestClose: parked calls are cancelled, others lose their questions only.
func TestClose(t *testing.T) {
	causes := make(chan error, 2)
	work := func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if name, _ := req.Params.LookupString("name"); name == "late" {
			<-time.After(time.Minute)
		}
		_, err := elicit(ctx, caller, "?")
		causes <- context.Cause(ctx)
		return mcp.Result{}, err
	}
	synctest.Test(t, func(t *testing.T) {
		lot := park.New(mcp.HandlerFunc(work), park.Options{})
		first := do(t.Context(), lot, greeting)
		late := start(t.Context(), lot, tool(`{"name":"late"}`))
		synctest.Wait()
		lot.Close()
		if err := <-causes; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the cause is %v", err)
		}
		if got := do(t.Context(), lot, retry(greeting, first.state(t), `{"q1":{}}`)).String(); !strings.Contains(got, "-32602") {
			t.Error(got)
		}
		if o := <-late; !errors.Is(o.err, mcp.ErrClosed) || <-causes != nil {
			t.Errorf("got %v", o)
		}
	})
}

// TestCloseWaitsForNoClient: a call whose client is there goes on without the lot.
func TestCloseWaitsForNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := park.New(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			answer, err := elicit(ctx, caller, "?")
			if err != nil {
				return mcp.Result{}, err
			}
			<-time.After(time.Hour)
			return result(answer)
		}), park.Options{})
		first := do(t.Context(), lot, greeting)
		second := start(t.Context(), lot, retry(greeting, first.state(t), `{"q1":{}}`))
		synctest.Wait()
		began := time.Now()
		lot.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if o := <-second; o.err != nil {
			t.Error(o)
		}
	})
}

// TestClientThatLeavesWhileItIsAnswered: nobody will come back for that call.
func TestClientThatLeavesWhileItIsAnswered_B122(t *testing.T) {
	ended := make(chan error, 1)
	ask := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		_, err := elicit(ctx, caller, "?")
		ended <- err
		return mcp.Result{}, err
	}
	bubble(t, ask, park.Options{}, func(t *testing.T, lot *park.Lot) {
		ctx, leave := context.WithCancel(t.Context())
		_, _ = lot.Handle(ctx, greeting, &leaver{leave: leave})
		synctest.Wait()
		if n := lot.Len(); n != 0 || !errors.Is(<-ended, context.Canceled) {
			t.Errorf("%d calls are parked", n)
		}
	})
}

// A leaver leaves while its request is put aside.
type leaver struct {
	client
	leave func()
}

func (l *leaver) Keep() { l.leave() }

// TestCloseIsBounded: a handler may not listen to its context.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := park.New(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			_, err := elicit(ctx, caller, "?")
			<-time.After(time.Hour)
			return mcp.Result{}, err
		}), park.Options{})
		do(t.Context(), lot, greeting)
		began := time.Now()
		lot.Close()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		<-time.After(time.Hour)
		if n := lot.Len(); n != 0 {
			t.Errorf("%d calls are parked", n)
		}
	})
}

// TestLargeQuestionIsPutAlone: a single one has no limit, two have.
func TestLargeQuestionIsPutAlone(t *testing.T) {
	large := strings.Repeat("x", park.MaxQuestionBytes+1)
	ask := func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		answer, err := elicit(ctx, caller, large)
		if err != nil {
			return mcp.Result{}, err
		}
		return result(answer)
	}
	bubble(t, ask, park.Options{}, func(t *testing.T, lot *park.Lot) {
		first := do(t.Context(), lot, greeting)
		if !strings.Contains(first.questions(), large) {
			t.Errorf("the client gets %.200s", first)
		}
		if o := do(t.Context(), lot, retry(greeting, first.state(t), `{"q1":{}}`)); o.err != nil {
			t.Error(o)
		}
	})
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// slowly is a server whose calls do what act does and are then never answered.
func slowly(act func(ctx context.Context, req *mcp.Request, caller mcp.Caller)) *puppet {
	return &puppet{handle: func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return mcp.Result{}, errUsual
		}
		act(ctx, req, caller)
		<-ctx.Done()
		cause := context.Cause(ctx)
		kind := mcp.Cancelled
		if errors.Is(cause, context.DeadlineExceeded) {
			kind = mcp.TimedOut
		}
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: kind, Outcome: mcp.MaybeExecuted, Err: cause}
	}}
}

// progress notifies of progress, which need not grow.
func progress(ctx context.Context, caller mcp.Caller, req *mcp.Request, at string) {
	_ = caller.Notify(ctx, &mcp.Notification{
		Method: mcp.NotificationProgress,
		Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"progressToken":%s,"progress":%s}`, req.Meta.ProgressToken.Raw(), at)),
	})
}

// every notifies of progress at an interval, as long as the call goes on.
func every(interval time.Duration, at ...string) func(context.Context, *mcp.Request, mcp.Caller) {
	return func(ctx context.Context, req *mcp.Request, caller mcp.Caller) {
		for i := 0; ctx.Err() == nil; i++ {
			progress(ctx, caller, req, at[i%len(at)])
			select {
			case <-time.After(interval):
			case <-ctx.Done():
			}
		}
	}
}

func nothing(context.Context, *mcp.Request, mcp.Caller) {}

// asksFor keeps a question open for a time, and then does nothing.
func asksFor(d time.Duration) func(context.Context, *mcp.Request, mcp.Caller) {
	return func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) {
		<-time.After(10 * time.Second)
		_, _ = caller.Ask(ctx, &mcp.Request{
			Method: mcp.MethodListRoots, Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"for":%d}`, d)),
		})
	}
}

// TestTimeouts_B140_S157_S184 has calls go on for ever, which they do not.
func TestTimeouts_B140_S157_S184(t *testing.T) {
	const idle, most = client.DefaultTimeout, client.DefaultMaxTimeout
	for _, tt := range []struct {
		name  string
		act   func(context.Context, *mcp.Request, mcp.Caller)
		opts  *client.CallOptions
		after time.Duration
		limit string
	}{
		{"silence", nothing, nil, idle, "Timeout of 30s"},
		{"its own limit", nothing, &client.CallOptions{Timeout: time.Second}, time.Second, "Timeout of 1s"},
		{"its own limit, a long one", nothing, &client.CallOptions{Timeout: time.Hour}, time.Hour, "MaxTimeout of 1h0m0s"},
		{"its own maximum", nothing, &client.CallOptions{MaxTimeout: 2 * time.Second}, 2 * time.Second, "MaxTimeout of 2s"},
		{"no limit of silence", nothing, &client.CallOptions{Timeout: -1}, most, "MaxTimeout of 10m0s"},
		{"progress that grows", every(20*time.Second, "1", "2", "3"), nil, most, "MaxTimeout of 10m0s"},
		{"progress that does not", every(20*time.Second, "1", "1", "0.5", "null", "1e9", `"x"`), nil, most, "MaxTimeout of 10m0s"},
		{"a flood of progress", every(10*time.Millisecond, "1"), &client.CallOptions{MaxTimeout: 20 * time.Second}, 20 * time.Second, "MaxTimeout of 20s"},
		{"progress that comes too late", every(31*time.Second, "1"), nil, idle, "Timeout of 30s"},
		{"a question", asksFor(time.Hour), nil, time.Hour + idle, "Timeout of 30s"},
		{"a question, and the maximum", asksFor(time.Hour), &client.CallOptions{MaxTimeout: 20 * time.Second}, time.Hour + 20*time.Second, "MaxTimeout of 20s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, slowly(tt.act), &client.Options{
					Roots: func(ctx context.Context) ([]mcp.Root, error) {
						<-time.After(time.Hour)
						return nil, nil
					},
				})
				began := time.Now()
				_, err := c.CallTool(t.Context(), "work", nil, tt.opts)
				if took := time.Since(began); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				if kind, sent := outcome(err); kind != mcp.TimedOut || sent != mcp.MaybeExecuted {
					t.Errorf("%v, %v", kind, sent)
				}
				limit, named := errors.AsType[*client.TimeoutError](err)
				if !errors.Is(err, context.DeadlineExceeded) || !named || !strings.Contains(err.Error(), tt.limit) {
					t.Errorf("the error is %v (%v)", err, limit)
				}
			})
		})
	}
}

// TestTimeoutsOfManyCalls: calls of one client end each at its own time, in whatever
// order they began, and whatever the others do.
func TestTimeoutsOfManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, slowly(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) {
			if name, _ := req.Params.LookupString("name"); name == "asks" {
				asksFor(time.Minute)(ctx, req, caller)
			}
		}), &client.Options{Roots: func(context.Context) ([]mcp.Root, error) {
			<-time.After(time.Minute)
			return nil, nil
		}})
		var calls sync.WaitGroup
		for i, tt := range []struct {
			name    string
			timeout time.Duration
			after   time.Duration
		}{
			{"waits", 50 * time.Second, 50 * time.Second},
			{"waits", 5 * time.Second, 5 * time.Second},
			{"asks", 20 * time.Second, time.Minute + 20*time.Second},
			{"waits", time.Second, time.Second},
			{"waits", 5 * time.Second, 5 * time.Second},
			{"waits", -1, client.DefaultMaxTimeout},
			{"waits", 15 * time.Second, 15 * time.Second},
		} {
			calls.Go(func() {
				<-time.After(time.Duration(i) * 100 * time.Millisecond)
				began := time.Now()
				_, err := c.CallTool(t.Context(), tt.name, nil, &client.CallOptions{Timeout: tt.timeout})
				if took := time.Since(began); took != tt.after {
					t.Errorf("call %d took %v, want %v: %v", i, took, tt.after, err)
				}
				if _, named := errors.AsType[*client.TimeoutError](err); !named {
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		calls.Wait()
	})
}

func TestNoLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, slowly(nothing), &client.Options{Timeout: -1, MaxTimeout: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		_, err := c.CallTool(ctx, "work", nil, nil)
		if kind, _ := outcome(err); kind != mcp.TimedOut {
			t.Errorf("the error is %v", err)
		}
		if _, ours := errors.AsType[*client.TimeoutError](err); ours {
			t.Errorf("a limit of ours ended it: %v", err)
		}
	})
}

// TestTimeoutOfItsOwnIsNoMaximum: a call of a client without a maximum that has a
// timeout of its own goes on for as long as there is progress.
func TestTimeoutOfItsOwnIsNoMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, slowly(every(20*time.Second, "1")), &client.Options{MaxTimeout: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
		defer cancel()
		_, err := c.CallTool(ctx, "work", nil, &client.CallOptions{Timeout: time.Minute})
		if _, ours := errors.AsType[*client.TimeoutError](err); ours {
			t.Errorf("a limit of ours ended it: %v", err)
		}
	})
}

// TestResultsOfTasksAreWaitedFor: a request for the result of a task has no limit, as
// the task may take as long as it likes, unless the call says so.
func TestResultsOfTasksAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, &puppet{stays: mcp.MethodTaskResult}, nil)
		for name, ask := range map[string]func(context.Context) error{
			"Call": func(ctx context.Context) error {
				_, err := c.Call(ctx, mcp.MethodTaskResult, map[string]any{"taskId": "1"}, nil)
				return err
			},
			"Handle": func(ctx context.Context) error {
				_, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodTaskResult}, mcp.NoCaller{})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
			defer cancel()
			err := ask(ctx)
			if _, ours := errors.AsType[*client.TimeoutError](err); ours || err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := c.Call(t.Context(), mcp.MethodTaskResult, nil, &client.CallOptions{Timeout: time.Second})
		if _, ours := errors.AsType[*client.TimeoutError](err); !ours {
			t.Errorf("with a limit of its own: %v", err)
		}
	})
}

// TestProgressIsTold_B140: in order and before the call returns, whatever it says.
func TestProgressIsTold_B140(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{handle: func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return mcp.Result{}, errUsual
			}
			for _, at := range []string{"1", "1", "0.5", "null", `"x"`, "1e9"} {
				progress(ctx, caller, req, at)
			}
			return mcp.RawResult([]byte(`{"content":[]}`)), nil
		}}
		c := connect(t, p, nil)
		var got []float64
		_, err := c.CallTool(t.Context(), "work", nil, &client.CallOptions{Progress: func(p *mcp.ProgressParams) {
			got = append(got, p.Progress)
		}})
		if err != nil || fmt.Sprint(got) != "[1 1 0.5 0 1e+09]" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestProgressIsAskedFor_B140: of calls that may take long, since a server that is
// asked for none cannot say that it goes on, and of others if somebody looks.
func TestProgressIsAskedFor_B140(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(map[string]int) // by method
		c := connect(t, &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if !req.Meta.ProgressToken.IsZero() {
				tokens[req.Method]++
			}
			return mcp.Result{}, errUsual
		}}, nil)
		look := &client.CallOptions{Progress: func(*mcp.ProgressParams) {}}
		params := &mcp.CompleteParams{}
		for _, opts := range []*client.CallOptions{nil, {}, look} {
			_, _ = c.CallTool(t.Context(), "work", nil, opts)
			_, _ = c.ReadResource(t.Context(), "a:b", opts)
			_, _ = c.GetPrompt(t.Context(), "p", nil, opts)
			_, _ = c.Complete(t.Context(), params, opts)
		}
		want := map[string]int{mcp.MethodCallTool: 3, mcp.MethodReadResource: 3, mcp.MethodGetPrompt: 3, mcp.MethodComplete: 1}
		if !maps.Equal(tokens, want) {
			t.Errorf("progress was asked for: %v, want %v", tokens, want)
		}
	})
}

// TestCancelledCall_S158_S187: the error tells the caller's own reason.
func TestCancelledCall_S158_S187(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, slowly(nothing), nil)
		reason := errors.New("it is not wanted any more")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		_, err := c.CallTool(ctx, "work", nil, nil)
		if kind, sent := outcome(err); kind != mcp.Cancelled || sent != mcp.MaybeExecuted || !errors.Is(err, reason) {
			t.Errorf("the error is %v", err)
		}
	})
}

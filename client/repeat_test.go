package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// toolList is a list of one tool that may be called twice and one that may not.
const toolList = `{"tools":[
	{"name":"again","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},
	{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
	{"name":"work","inputSchema":{"type":"object"}}]}`

func status(code int, after time.Duration) error {
	return &mcp.CallError{
		Kind: mcp.BadReply, Outcome: mcp.Answered,
		Err: &streamable.StatusError{Status: code, RetryAfter: after},
	}
}

// TestRepeating_B097_P1_P2 fails the first attempt of a call in each way, and counts
// the attempts.
func TestRepeating_B097_P1_P2(t *testing.T) {
	lostCall := func(o mcp.Outcome) error { return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: o, Err: errCrash} }
	for _, tt := range []struct {
		name     string
		first    error
		ends     bool // the connection, with the call
		notifies bool // before the call fails
		tool     int  // attempts of a tools/call
		safe     int  // attempts of a tool that may be repeated
		wait     time.Duration
	}{
		{"not sent", lostCall(mcp.NotSent), true, false, 2, 2, client.DefaultMinWait},
		{"not sent, and the connection ends a moment later", lostCall(mcp.NotSent), false, false, 2, 2, 2 * time.Second},
		{"maybe executed", lostCall(mcp.MaybeExecuted), true, false, 1, 2, client.DefaultMinWait},
		{"maybe executed, and the connection goes on", lostCall(mcp.MaybeExecuted), false, false, 1, 2, 0},
		{"answered", lostCall(mcp.Answered), true, false, 1, 1, 0},
		{"after progress", lostCall(mcp.NotSent), true, true, 1, 1, 0},
		{"never reached", &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: errDial}, false, false, 1, 1, 0},
		{"too large", &mcp.CallError{Kind: mcp.LimitExceeded, Outcome: mcp.NotSent, Limit: "MaxLine"}, false, false, 1, 1, 0},
		{"refused", peerError(`{"code":-32000,"message":"no"}`), false, false, 1, 1, 0},
		{"another revision", peerError(`{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}`), false, false, 2, 2, client.DefaultMinWait},
		{"another revision, which is the same", peerError(`{"code":-32022,"message":"v","data":{"supported":["2025-11-25"]}}`), false, false, 1, 1, 0},
		{"an error of ours with that code", jsonrpc.Errorf(jsonrpc.CodeUnsupportedVersion, "v"), false, false, 1, 1, 0},
		{"429 for 3 s", status(http.StatusTooManyRequests, 3*time.Second), false, false, 2, 2, 3 * time.Second},
		{"429", status(http.StatusTooManyRequests, 0), false, false, 2, 2, time.Second},
		{"503 for 3 s", status(http.StatusServiceUnavailable, 3*time.Second), false, false, 2, 2, 3 * time.Second},
		{"503", status(http.StatusServiceUnavailable, 0), false, false, 1, 1, 0},
		{"503 for an hour", status(http.StatusServiceUnavailable, time.Hour), false, false, 1, 1, 0},
		{"503 for as long as the call may take", status(http.StatusServiceUnavailable, client.DefaultTimeout), false, false, 1, 1, 0},
		{"500 for 3 s", status(http.StatusInternalServerError, 3*time.Second), false, false, 1, 1, 0},
		{"413", status(http.StatusRequestEntityTooLarge, 0), false, false, 1, 1, 0},
		{"401", &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: &streamable.AuthError{Status: 401}}, false, false, 1, 1, 0},
		{"something else", errCrash, false, false, 1, 1, 0},
	} {
		for tool, want := range map[string]int{"work": tt.tool, "again": tt.safe, "look": tt.safe, "unknown": tt.tool} {
			t.Run(tt.name+"/"+tool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					attempts := 0
					p := &puppet{}
					p.handle = func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
						switch {
						case req.Method == mcp.MethodListTools:
							return mcp.RawResult([]byte(toolList)), nil
						case req.Method != mcp.MethodCallTool:
							return mcp.Result{}, errUsual
						}
						if attempts++; attempts > 1 {
							return mcp.RawResult([]byte(`{"content":[]}`)), nil
						}
						if tt.notifies {
							_ = caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress})
						}
						if tt.ends {
							p.last().end(errCrash)
						}
						return mcp.Result{}, tt.first
					}
					c := connect(t, p, nil)
					for _, err := range c.Tools(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
					}
					began := time.Now()
					_, err := c.CallTool(t.Context(), tool, nil, nil)
					if attempts != want || (err == nil) != (want == 2) {
						t.Errorf("%d attempts, %v", attempts, err)
					}
					if want == 1 && !errors.Is(err, tt.first) {
						t.Errorf("the error is %v", err)
					}
					if took := time.Since(began); took > tt.wait {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// TestServerThatWantsALongPause is not waited for, however long the call may take.
func TestServerThatWantsALongPause(t *testing.T) {
	for pause, want := range map[time.Duration]int{30 * time.Second: 2, 31 * time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			c := connect(t, &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				if req.Method != mcp.MethodCallTool {
					return mcp.Result{}, errUsual
				}
				attempts++
				return mcp.Result{}, status(http.StatusTooManyRequests, pause)
			}}, nil)
			_, err := c.CallTool(t.Context(), "work", nil, &client.CallOptions{Timeout: time.Hour})
			if attempts != want || err == nil {
				t.Errorf("a pause of %v: %d attempts, %v", pause, attempts, err)
			}
		})
	}
}

// TestPauseOfAServerIsNoSilence: a call that was told to wait has all of its time then.
func TestPauseOfAServerIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := connect(t, &puppet{handle: func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return mcp.Result{}, errUsual
			}
			if attempts++; attempts == 1 {
				return mcp.Result{}, status(http.StatusTooManyRequests, 20*time.Second)
			}
			select {
			case <-time.After(20 * time.Second):
				return mcp.RawResult([]byte(`{"content":[]}`)), nil
			case <-ctx.Done():
				return mcp.Result{}, lost(req, mcp.MaybeExecuted, context.Cause(ctx))
			}
		}}, nil)
		if _, err := c.CallTool(t.Context(), "work", nil, nil); err != nil || attempts != 2 {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}

// TestMethodsThatAreRepeated_P2: those that ask for something and change nothing.
func TestMethodsThatAreRepeated_P2(t *testing.T) {
	for method, want := range map[string]int{
		mcp.MethodListTools: 2, mcp.MethodListPrompts: 2, mcp.MethodListResources: 2, mcp.MethodListResourceTemplates: 2,
		mcp.MethodReadResource: 2, mcp.MethodGetPrompt: 2, mcp.MethodComplete: 2, mcp.MethodDiscover: 2, mcp.MethodPing: 2,
		mcp.MethodCallTool: 1, "tasks/cancel": 1, "vendor/do": 1,
	} {
		t.Run(method, func(t *testing.T) {
			attempts := 0
			c := connect(t, &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				if req.Method != method {
					return mcp.Result{}, errUsual
				}
				attempts++
				return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
			}}, nil)
			_, err := c.Call(t.Context(), method, nil, nil)
			if attempts != want || !errors.Is(err, errCrash) || mcp.OutcomeOf(err) != mcp.MaybeExecuted {
				t.Errorf("%d attempts, %v", attempts, err)
			}
		})
	}
}

// TestCallThatHasAskedIsNotRepeated_P2: the user would be asked twice.
func TestCallThatHasAskedIsNotRepeated_P2(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			p := &puppet{handle: func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				if req.Method != mcp.MethodReadResource {
					return mcp.Result{}, errUsual
				}
				attempts++
				if asks {
					_, _ = caller.Ask(ctx, &mcp.Request{Method: mcp.MethodListRoots})
				}
				return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
			}}
			c := connect(t, p, nil)
			_, err := c.ReadResource(t.Context(), "a:b", nil)
			if want := map[bool]int{false: 2, true: 1}[asks]; attempts != want || !errors.Is(err, errCrash) {
				t.Errorf("asks %v: %d attempts, %v", asks, attempts, err)
			}
		})
	}
}

// TestHintsOfAListThatHasChangedMeanwhile_P2: what a list says that was asked for
// before the tools changed may be of other tools.
func TestHintsOfAListThatHasChangedMeanwhile_P2(t *testing.T) {
	for _, changes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			s := newStation(mcp.Modern)
			s.puppet = &puppet{dialed: func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
				return newEdge(mcp.Modern, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					switch req.Method {
					case mcp.MethodListTools:
						if changes {
							s.tell(mcp.NotificationToolsListChanged, `{}`)
						}
						return mcp.RawResult([]byte(toolList)), nil
					case mcp.MethodCallTool:
						attempts++
						return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
					}
					return s.handle(ctx, req, caller)
				}), nil
			}}
			c := connect(t, s, nil)
			listen(t, c, tools)
			for _, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
			}
			_, err := c.CallTool(t.Context(), "again", nil, nil)
			if want := map[bool]int{false: 2, true: 1}[changes]; attempts != want {
				t.Errorf("changes %v: %d attempts, %v", changes, attempts, err)
			}
		})
	}
}

// TestConnectionThatIsAboutToEnd: what it did not take waits for the next one.
func TestConnectionThatIsAboutToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		p.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool || p.count() > 1 {
				return mcp.Result{}, errUsual
			}
			time.AfterFunc(100*time.Millisecond, func() { p.last().end(errCrash) })
			return mcp.Result{}, lost(req, mcp.NotSent, errCrash) // as by a pipe that is broken
		}
		c := connect(t, p, nil)
		if err := call(t, c); err != nil || p.count() != 2 {
			t.Errorf("%d connections, %v", p.count(), err)
		}
	})
}

// TestNothingIsMadeThrice_P2: one repetition, whatever follows.
func TestNothingIsMadeThrice_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		p := &puppet{}
		p.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodReadResource {
				return mcp.Result{}, errUsual
			}
			attempts++
			p.last().end(errCrash)
			return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
		}
		c := connect(t, p, nil)
		_, err := c.ReadResource(t.Context(), "a:b", nil)
		if kind, sent := outcome(err); attempts != 2 || kind != mcp.ConnectionLost || sent != mcp.MaybeExecuted {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}

// TestRepetitionThatIsNotSent tells the worst that may have become of the call.
func TestRepetitionThatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		p.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodReadResource {
				return mcp.Result{}, errUsual
			}
			p.redial(failAfter(0))
			p.last().end(errCrash)
			return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
		}
		c := connect(t, p, nil)
		_, err := c.ReadResource(t.Context(), "a:b", nil)
		if kind, sent := outcome(err); kind != mcp.Unreachable || sent != mcp.MaybeExecuted ||
			!errors.Is(err, errCrash) || !errors.Is(err, errDial) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestWaitingForAServerEndsWithTheCall: also with the client.
func TestWaitingForAServerEndsWithTheCall(t *testing.T) {
	for _, closing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				if req.Method == mcp.MethodCallTool {
					return mcp.Result{}, status(http.StatusTooManyRequests, 20*time.Second)
				}
				return mcp.Result{}, errUsual
			}}
			c := connect(t, p, nil)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, func() {
				if closing {
					_ = c.Close()
					return
				}
				cancel()
			})
			defer cancel()
			began := time.Now()
			_, err := c.CallTool(ctx, "work", nil, nil)
			if want := map[bool]error{true: mcp.ErrClosed, false: context.Canceled}[closing]; time.Since(began) != time.Second || !errors.Is(err, want) {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if kind, sent := outcome(err); !closing && (kind != mcp.Cancelled || sent != mcp.Answered) {
				t.Errorf("%v, %v", kind, sent)
			}
		})
	}
}

// A slowlyClosed is a target with a connection that works while it is being closed.
type slowlyClosed struct{ *puppet }

func (s slowlyClosed) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	edge, err := s.puppet.Dial(ctx, opts)
	return slowlyClosedEdge{edge}, err
}

type slowlyClosedEdge struct{ transport.Edge }

func (e slowlyClosedEdge) Close() error {
	pass(time.Minute)
	return e.Edge.Close()
}

// TestCloseSendsNothing: a call that waits for its second attempt has none.
func TestCloseSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := connect(t, slowlyClosed{&puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return mcp.Result{}, errUsual
			}
			attempts++
			return mcp.Result{}, status(http.StatusTooManyRequests, 20*time.Second)
		}}}, nil)
		ended := make(chan error, 1)
		go func() { ended <- call(t, c) }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, mcp.ErrClosed) || attempts != 1 {
			t.Errorf("%d attempts: %v", attempts, err)
		}
	})
}

// TestPolicyOfRepeating asks the user's own function.
func TestPolicyOfRepeating(t *testing.T) {
	usual, endless := strings.Repeat("x", 128), strings.Repeat("x", 100_000)
	list := strings.Replace(toolList, `{"name":"again"`, `{"name":"`+usual+`","inputSchema":{}},{"name":"`+endless+`","inputSchema":{}},{"name":"again"`, 1)
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		p := &puppet{}
		p.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodListTools:
				return mcp.RawResult([]byte(list)), nil
			case mcp.MethodCallTool:
				attempts.Add(1)
				return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
			}
			return mcp.Result{}, errUsual
		}
		c := connect(t, p, &client.Options{Repeat: func(tool *mcp.Tool) bool { return tool.Name == "work" || len(tool.Name) > 10 }})
		for range c.Tools(t.Context()) {
		}
		// What is kept of tools is bounded.
		for tool, want := range map[string]int64{"work": 2, "again": 1, usual: 2, endless: 1} {
			attempts.Store(0)
			if _, err := c.CallTool(t.Context(), tool, nil, nil); err == nil || attempts.Load() != want {
				t.Errorf("%.20s: %d attempts, %v", tool, attempts.Load(), err)
			}
		}
	})
}

// TestEraThatTurnsOutOtherwise: what was known of a server falls when it
// answers in another era's way, and is not believed again.
func TestEraThatTurnsOutOtherwise(t *testing.T) {
	refusal := peerError(`{"code":-32601,"message":"Method not found"}`)
	for _, tt := range []struct {
		name  string
		prior client.Verdict
		fails error
		dials []mcp.Era // of the first connect
	}{
		{"legacy, and it refuses initialize", client.Verdict{Era: mcp.Legacy}, refusal, []mcp.Era{mcp.Legacy, mcp.NoEra}},
		{"modern, and it refuses discover", client.Verdict{Era: mcp.Modern}, refusal, []mcp.Era{mcp.Modern, mcp.NoEra}},
		{"legacy, and it has no HTTP endpoint like that", client.Verdict{Era: mcp.Legacy}, status(400, 0), []mcp.Era{mcp.Legacy, mcp.NoEra}},
		{"it is overloaded", client.Verdict{Era: mcp.Legacy}, status(503, 0), []mcp.Era{mcp.Legacy}},
		{"it is not there", client.Verdict{Era: mcp.Legacy}, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent}, []mcp.Era{mcp.Legacy}},
		{"it crashes", client.Verdict{Era: mcp.Legacy}, lost(&mcp.Request{}, mcp.MaybeExecuted, errCrash), []mcp.Era{mcp.Legacy}},
		{"it is right", client.Verdict{Era: mcp.Legacy}, nil, []mcp.Era{mcp.Legacy}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppet{dialed: func(_ context.Context, n int, _ transport.DialOptions) (*fakeEdge, error) {
					if n == 1 && tt.fails != nil {
						return nil, tt.fails
					}
					return newEdge(mcp.Modern, nil), nil
				}}
				c, err := client.Connect(t.Context(), p, &client.Options{Prior: &tt.prior})
				dials := p.dialedWith()
				for i, opts := range dials {
					if opts.Era != tt.dials[i] {
						t.Errorf("attempt %d is for %v", i, opts.Era)
					}
				}
				if len(dials) != len(tt.dials) || (err == nil) != (tt.fails == nil || len(tt.dials) == 2) {
					t.Errorf("%d attempts, %v", len(dials), err)
				}
				if err == nil {
					if v := c.Verdict(); v.Era != mcp.Modern || v.Revision != mcp.NewestModern {
						t.Errorf("the verdict is %v", v)
					}
					_ = c.Close()
				}
			})
		})
	}
}

// TestSecondAttemptThatFailsIsNoAnswer: the error is ours, though it tells of the
// server's first, and a bridge passes neither on as what the server says.
func TestSecondAttemptThatFailsIsNoAnswer(t *testing.T) {
	for _, gaveUp := range []bool{false, true} {
		t.Run(fmt.Sprint(gaveUp), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				const refusal = `{"code":-32022,"message":"another one","data":{"supported":["2026-07-28"]}}`
				var p *puppet
				p = &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
					if req.Method != mcp.MethodReadResource {
						return mcp.Result{}, errUsual
					}
					p.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
						if gaveUp {
							cancel()
							pass(time.Minute)
						}
						return nil, errDial
					})
					return mcp.Result{}, peerError(refusal)
				}}
				c := connect(t, p, nil)
				_, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodReadResource}, mcp.NoCaller{})
				if _, isOurs := errors.AsType[*mcp.CallError](err); !isOurs || jsonrpc.FromPeer(err) || jsonrpc.ToWire(err).Code != jsonrpc.CodeInternalError {
					t.Errorf("the error is %v, told as %v", err, jsonrpc.ToWire(err))
				}
				if !strings.Contains(err.Error(), "another one") {
					t.Errorf("it does not tell of the first attempt: %v", err)
				}
			})
		})
	}
}

// TestRefusalsByALegacyServer: what only a modern server says shows that it has become
// one. That the client lacks a capability, servers of both eras say.
func TestRefusalsByALegacyServer(t *testing.T) {
	for _, tt := range []struct {
		refusal     string
		connections int
	}{
		{`{"code":-32020,"message":"Header mismatch"}`, 2},
		{`{"code":-32022,"message":"Unsupported","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}`, 2},
		{`{"code":-32022,"message":"a code of its own"}`, 1},
		{`{"code":-32022,"message":"a code of its own","data":{"supported":"everything"}}`, 1},
		{`{"code":-32021,"message":"Missing capability","data":{"requiredCapabilities":{"elicitation":{}}}}`, 1},
		{`{"code":-32602,"message":"Invalid params"}`, 1},
	} {
		t.Run(tt.refusal, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				p := &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
					if req.Method != mcp.MethodReadResource {
						return mcp.Result{}, errUsual
					}
					if attempts++; attempts > 1 {
						return mcp.RawResult([]byte(`{"contents":[]}`)), nil
					}
					return mcp.Result{}, peerError(tt.refusal)
				}}
				c := connect(t, p, nil)
				_, err := c.ReadResource(t.Context(), "x:y", nil)
				if attempts != tt.connections || p.count() != tt.connections || (err == nil) != (attempts == 2) {
					t.Errorf("%d attempts over %d connections: %v", attempts, p.count(), err)
				}
			})
		})
	}
}

// TestVerdictIsKeptForTheNextConnection: a legacy server that is silent at a probe
// is not probed each time that it starts.
func TestVerdictIsKeptForTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		connect(t, p, nil)
		p.last().end(errCrash)
		time.Sleep(time.Second)
		p.redial(func(_ context.Context, n int, _ transport.DialOptions) (*fakeEdge, error) {
			if n == 3 { // as if it could not stand initialize any more
				return nil, lost(&mcp.Request{}, mcp.MaybeExecuted, errCrash)
			}
			return nil, nil
		})
		p.last().end(errCrash)
		time.Sleep(10 * time.Second)
		if dials := p.dialedWith(); len(dials) != 4 || dials[2].Era != mcp.Legacy || dials[3].Era != mcp.NoEra {
			t.Errorf("after it had crashed at initialize it was dialed with %v", dials[len(dials)-1].Era)
		}
		if dials := p.dialedWith(); dials[0].Era != mcp.NoEra || dials[1].Era != mcp.Legacy || dials[1].Revision != "" {
			t.Errorf("it was dialed with %v, then %v", dials[0].Era, dials[1].Era)
		}
	})
}

// TestPriorOfAModernServer connects without a round trip; the verdict falls with an
// answer that is not a modern server's.
func TestPriorOfAModernServer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		first    error // of the call
		discover error // of looking again
		dials    int
		checks   int
		attempts int
	}{
		{"right", nil, nil, 1, 0, 1},
		{"an error, and it is modern", peerError(`{"code":-32000,"message":"no"}`), nil, 1, 1, 1},
		{"an error, and it is legacy", peerError(`{"code":-32600,"message":"not initialized"}`), peerError(`{"code":-32601,"message":"no"}`), 2, 1, 2},
		{"HTTP 400, and it is legacy", status(400, 0), status(400, 0), 2, 1, 2},
		{"HTTP 400, and nothing is known", status(400, 0), status(503, 0), 1, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				checks, attempts := 0, 0
				handle := func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
					switch req.Method {
					case mcp.MethodDiscover:
						checks++
						return mcp.RawResult([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`)), tt.discover
					case mcp.MethodListPrompts:
						if attempts++; attempts == 1 && tt.first != nil {
							return mcp.Result{}, tt.first
						}
					}
					return mcp.Result{}, errUsual
				}
				p := &puppet{dialed: func(_ context.Context, n int, _ transport.DialOptions) (*fakeEdge, error) {
					if n > 1 {
						return newEdge(mcp.Legacy, handle), nil
					}
					e := newEdge(mcp.Modern, handle)
					e.info.Discover = mcp.Result{}
					return e, nil
				}}
				c := connect(t, p, &client.Options{Prior: &client.Verdict{Era: mcp.Modern, Revision: mcp.NewestModern}})
				if o := p.dialedWith()[0]; o.Era != mcp.Modern || o.Revision != mcp.NewestModern {
					t.Fatalf("it was dialed with %v %v", o.Era, o.Revision)
				}
				var err error
				for _, err = range c.Prompts(t.Context()) {
				}
				if p.count() != tt.dials || checks != tt.checks || attempts != tt.attempts {
					t.Errorf("%d connections, %d checks, %d attempts, %v", p.count(), checks, attempts, err)
				}
				if tt.dials == 2 && c.Verdict().Era != mcp.Legacy {
					t.Errorf("the verdict is still %v", c.Verdict())
				}
				if tt.attempts == 1 && !errors.Is(err, tt.first) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestVerdictSurvivesAnOutage: that nobody is there says nothing of the era.
func TestVerdictSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{dialed: func(_ context.Context, n int, _ transport.DialOptions) (*fakeEdge, error) {
			if n == 2 || n == 3 {
				return nil, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: errDial}
			}
			return nil, nil
		}}
		connect(t, p, nil)
		p.last().end(errCrash)
		time.Sleep(time.Minute)
		dials := p.dialedWith()
		if len(dials) != 4 {
			t.Fatalf("%d attempts", len(dials))
		}
		for i, o := range dials[1:] {
			if o.Era != mcp.Legacy {
				t.Errorf("attempt %d after the outage began is for %v", i, o.Era)
			}
		}
	})
}

// TestServerIsLookedAtOnce however many of its calls fail, if it is modern.
func TestServerIsLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		e := newEdge(mcp.Modern, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method == mcp.MethodDiscover {
				checks++
				return mcp.RawResult([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
			}
			return mcp.Result{}, peerError(`{"code":-32000,"message":"no"}`)
		})
		e.info.Discover = mcp.Result{}
		p := &puppet{dialed: func(context.Context, int, transport.DialOptions) (*fakeEdge, error) { return e, nil }}
		c := connect(t, p, &client.Options{Prior: &client.Verdict{Era: mcp.Modern, Revision: mcp.NewestModern}})
		for range 5 {
			if err := call(t, c); !jsonrpc.FromPeer(err) {
				t.Errorf("the error is %v", err)
			}
		}
		if checks != 1 || p.count() != 1 {
			t.Errorf("%d checks, %d connections", checks, p.count())
		}
	})
}

// TestEraOfTheOptionsWins over that of a verdict that was kept.
func TestEraOfTheOptionsWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		connect(t, p, &client.Options{Era: mcp.Legacy, Prior: &client.Verdict{Era: mcp.Modern, Revision: mcp.NewestModern}})
		if o := p.dialedWith()[0]; o.Era != mcp.Legacy || o.Revision != "" {
			t.Errorf("it was dialed with %v %v", o.Era, o.Revision)
		}
	})
}

// TestLateRefusalLeavesTheNewConnection: it speaks of the one before.
func TestLateRefusalLeavesTheNewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		p := &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return mcp.Result{}, errUsual
			}
			n := attempts.Add(1)
			if n > 2 {
				return mcp.RawResult([]byte(`{"content":[]}`)), nil
			}
			pass(time.Duration(n) * time.Minute)
			return mcp.Result{}, peerError(`{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}`)
		}}
		c := connect(t, p, &client.Options{Timeout: -1})
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if err := call(t, c); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		if p.count() != 2 || attempts.Load() != 4 {
			t.Errorf("%d connections, %d attempts", p.count(), attempts.Load())
		}
	})
}

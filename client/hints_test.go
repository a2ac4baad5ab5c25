package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// oneTool is a page of a list that says of the tool again what hints say.
func oneTool(hints, more string) string {
	return `{"tools":[{"name":"again","inputSchema":{"type":"object"},"annotations":{` + hints + `}}]` + more + `}`
}

const idempotent = `"idempotentHint":true`

// TestHintsOfTheConnectionBefore_P2: a call that may have been executed is made again
// only if the connection that it is repeated on says that it may be: the server may be
// another version by then.
func TestHintsOfTheConnectionBefore_P2(t *testing.T) {
	refused := peerError(`{"code":-32603,"message":"not now"}`)
	for _, tt := range []struct {
		name     string
		lists    []string // pages after the loss, "" for an error, "never" for no answer
		attempts int
		listed   int // pages after the loss
	}{
		{"as before", []string{oneTool(idempotent, "")}, 2, 1},
		{"read-only now", []string{oneTool(`"readOnlyHint":true`, "")}, 2, 1},
		{"not idempotent any more", []string{oneTool("", "")}, 1, 1},
		{"gone", []string{`{"tools":[]}`}, 1, 1},
		{"no list", []string{""}, 1, 1},
		{"what is no list", []string{`{"tools":5}`}, 1, 1},
		{"a list that never comes", []string{"never"}, 1, 1},
		{"on the second page", []string{`{"tools":[],"nextCursor":"a"}`, oneTool(idempotent, "")}, 2, 2},
		{"a second page that does not come", []string{oneTool(idempotent, `,"nextCursor":"a"`), ""}, 1, 2},
		{"a second page that says otherwise", []string{oneTool(idempotent, `,"nextCursor":"a"`), oneTool("", "")}, 1, 2},
	} {
		for _, ends := range []bool{true, false} {
			for _, kept := range []string{"", `,"ttlMs":1000000`} {
				name := map[bool]string{true: "another connection", false: "the same connection"}[ends] + kept
				t.Run(tt.name+"/"+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						attempts, listed := 0, 0
						p := &puppet{}
						p.handle = func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
							switch {
							case req.Method == mcp.MethodListTools && attempts == 0:
								return mcp.RawResult([]byte(oneTool(idempotent, kept))), nil
							case req.Method == mcp.MethodListTools:
								page := tt.lists[listed]
								if listed++; page == "" {
									return mcp.Result{}, refused
								}
								if page == "never" {
									<-ctx.Done()
									return mcp.Result{}, context.Cause(ctx)
								}
								return mcp.RawResult([]byte(page)), nil
							case req.Method != mcp.MethodCallTool:
								return mcp.Result{}, errUsual
							}
							if attempts++; attempts > 1 {
								return mcp.RawResult([]byte(`{"content":[]}`)), nil
							}
							if ends {
								p.last().end(errCrash)
							}
							return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
						}
						c := connect(t, p, nil)
						list(t, c)
						began := time.Now()
						_, err := c.CallTool(t.Context(), "again", nil, nil)
						if attempts != tt.attempts || listed != tt.listed || (err == nil) != (tt.attempts == 2) {
							t.Errorf("%d attempts, %d pages of lists, %v", attempts, listed, err)
						}
						if err != nil && (mcp.OutcomeOf(err) != mcp.MaybeExecuted || !errors.Is(err, errCrash)) {
							t.Errorf("the error is %v", err)
						}
						if took := time.Since(began); took > client.DefaultTimeout {
							t.Errorf("it took %v", took)
						}
					})
				})
			}
		}
	}
}

// TestHintsAreLookedUpOnce_P2: of all calls that were lost with a connection one lists
// the tools.
func TestHintsAreLookedUpOnce_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20
		var mu sync.Mutex
		attempts, lists := 0, 0
		p := &puppet{}
		p.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			switch req.Method {
			case mcp.MethodListTools:
				lists++
				return mcp.RawResult([]byte(oneTool(idempotent, ""))), nil
			case mcp.MethodCallTool:
				attempts++
				if attempts <= calls {
					return mcp.Result{}, errUsual
				}
			}
			return mcp.RawResult([]byte(`{"content":[]}`)), nil
		}
		p.stays = mcp.MethodCallTool
		c := connect(t, p, nil)
		list(t, c)
		var running sync.WaitGroup
		for range calls {
			running.Go(func() {
				if _, err := c.CallTool(t.Context(), "again", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		p.last().end(errCrash)
		running.Wait()
		if attempts != 2*calls || lists != 2 {
			t.Errorf("%d attempts, %d lists", attempts, lists)
		}
	})
}

// TestCallGivenUpWhileHintsAreLookedUp_P2: it is not made again, whether it looks or waits
// for another call that does.
func TestCallGivenUpWhileHintsAreLookedUp_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts, lists atomic.Int32
		p := &puppet{handle: func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			switch {
			case req.Method == mcp.MethodListTools && lists.Add(1) > 1:
				<-ctx.Done()
				return mcp.Result{}, context.Cause(ctx)
			case req.Method == mcp.MethodListTools:
				return mcp.RawResult([]byte(oneTool(idempotent, ""))), nil
			case req.Method == mcp.MethodCallTool:
				attempts.Add(1)
				return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
			}
			return mcp.Result{}, errUsual
		}}
		c := connect(t, p, nil)
		list(t, c)
		var running sync.WaitGroup
		for _, given := range []time.Duration{2 * time.Second, time.Second} {
			running.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), given)
				defer cancel()
				_, err := c.CallTool(ctx, "again", nil, nil)
				if kind, sent := outcome(err); kind != mcp.TimedOut || sent != mcp.MaybeExecuted || !errors.Is(err, errCrash) {
					t.Errorf("after %v: %v", given, err)
				}
			})
			synctest.Wait()
		}
		running.Wait()
		if attempts.Load() != 2 || lists.Load() != 2 {
			t.Errorf("%d attempts, %d lists", attempts.Load(), lists.Load())
		}
	})
}

// TestKeptListSaysNothingOfTheServerNow_P2: what the client has kept since before a call
// was lost is not what its server says after that, whoever asks for it.
func TestKeptListSaysNothingOfTheServerNow_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts, lists atomic.Int32
		refuse := make(chan struct{})
		p := &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			switch {
			case req.Method == mcp.MethodCallTool:
				attempts.Add(1)
				return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
			case req.Method != mcp.MethodListTools:
				return mcp.Result{}, errUsual
			}
			switch lists.Add(1) {
			case 1, 2:
				return mcp.RawResult([]byte(oneTool(idempotent, `,"ttlMs":1000000`))), nil
			case 3:
				<-refuse
				return mcp.Result{}, peerError(`{"code":-32603,"message":"not now"}`)
			}
			return mcp.RawResult([]byte(oneTool("", ""))), nil
		}}
		c := connect(t, p, nil)
		list(t, c) // has the client listen
		synctest.Wait()
		list(t, c)
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				if _, err := c.CallTool(t.Context(), "again", nil, nil); !errors.Is(err, errCrash) {
					t.Errorf("the call ended with %v", err)
				}
			})
			synctest.Wait() // the first one looks, the second one waits for that
		}
		list(t, c)
		if n := lists.Load(); n != 3 {
			t.Errorf("%d lists: the last one was not kept", n)
		}
		close(refuse)
		running.Wait()
		if attempts.Load() != 2 || lists.Load() != 4 {
			t.Errorf("%d attempts, %d lists", attempts.Load(), lists.Load())
		}
	})
}

// TestHintsAreThoseOfTheCaller: who is asked for a list is who is called.
func TestHintsAreThoseOfTheCaller_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		var asked []string
		p := &puppet{}
		p.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodListTools:
				asked = append(asked, string(req.Meta.Client))
				return mcp.RawResult([]byte(oneTool(idempotent, ""))), nil
			case mcp.MethodCallTool:
				if attempts++; attempts == 1 {
					return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
				}
			}
			return mcp.RawResult([]byte(`{"content":[]}`)), nil
		}
		c := connect(t, p, nil)
		list(t, c)
		req, err := mcp.NewRequest(mcp.MethodCallTool, map[string]any{"name": "again"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Handle(t.Context(), &mcp.Request{
			Method: req.Method, Params: req.Params, Meta: mcp.Metadata{Client: []byte(`{"name":"me"}`)},
		}, mcp.NoCaller{})
		if err != nil || attempts != 2 || len(asked) != 2 || !strings.Contains(asked[1], `"me"`) {
			t.Errorf("%v after %d attempts and lists of %q", err, attempts, asked)
		}
	})
}

// TestHintsThatChangeWhileTheyAreLookedUp_P2: a list that may be out of date when it comes
// is asked for again, and not for ever.
func TestHintsThatChangeWhileTheyAreLookedUp_P2(t *testing.T) {
	for changes, want := range map[int]struct{ attempts, lists int }{0: {2, 2}, 2: {2, 4}, 100: {1, 4}} {
		synctest.Test(t, func(t *testing.T) {
			attempts, lists := 0, 0
			s := newStation(mcp.Modern)
			s.puppet = &puppet{dialed: func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
				return newEdge(mcp.Modern, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					switch req.Method {
					case mcp.MethodListTools:
						if lists++; lists > 1 && lists <= 1+changes {
							s.tell(mcp.NotificationToolsListChanged, `{}`)
						}
						return mcp.RawResult([]byte(toolList)), nil
					case mcp.MethodCallTool:
						if attempts++; attempts > 1 {
							return mcp.RawResult([]byte(`{"content":[]}`)), nil
						}
						return mcp.Result{}, lost(req, mcp.MaybeExecuted, errCrash)
					}
					return s.handle(ctx, req, caller)
				}), nil
			}}
			c := connect(t, s, nil)
			listen(t, c, tools)
			list(t, c)
			_, err := c.CallTool(t.Context(), "again", nil, nil)
			if attempts != want.attempts || lists != want.lists || (err == nil) != (attempts == 2) {
				t.Errorf("%d changes: %d attempts, %d lists, %v", changes, attempts, lists, err)
			}
		})
	}
}

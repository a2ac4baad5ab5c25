package park_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

// bubble runs f with a lot in front of handler, which is closed afterwards.
func bubble(t *testing.T, handler mcp.HandlerFunc, opts park.Options, f func(t *testing.T, lot *park.Lot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lot := park.New(handler, opts)
		f(t, lot)
		lot.Close()
		lot.Close()
		synctest.Wait()
		if n := lot.Len(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
}

// greet asks one name and gives it back.
func greet(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	answer, err := elicit(ctx, caller, "who?")
	if err != nil {
		return mcp.Result{}, err
	}
	return result(answer)
}

var greeting = tool(`{"name":"greet","arguments":{"n":1}}`)

func TestAskedClientAnswersWithARetry(t *testing.T) {
	bubble(t, greet, park.Options{}, func(t *testing.T, lot *park.Lot) {
		first := do(t.Context(), lot, greeting)
		if got := first.questions(); got != `{"q1":{"method":"elicitation/create","params":{"message":"who?"}}}` {
			t.Errorf("asked %s", got)
		}
		if !first.kept {
			t.Error("the memory of the request was not kept")
		}
		if n := lot.Len(); n != 1 {
			t.Errorf("%d calls are parked", n)
		}
		second := do(t.Context(), lot, retry(greeting, first.state(t), `{"q1":{"action":"accept"},"other":1}`))
		if got := second.String(); got != `{"text":{"action":"accept"}}` {
			t.Errorf("got %s", got)
		}
		if second.kept || lot.Len() != 0 {
			t.Errorf("kept %t, %d calls are parked", second.kept, lot.Len())
		}
	})
}

// TestOtherRequestsPassAtNoCost: in the goroutine of the edge, with its caller.
func TestOtherRequestsPassAtNoCost(t *testing.T) {
	var got mcp.Caller
	lot := park.New(mcp.HandlerFunc(func(_ context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		got = caller
		return mcp.Result{}, nil
	}), park.Options{})
	defer lot.Close()
	without := tool(`{"name":"x","arguments":{}}`)
	without.Meta.Capabilities = []byte(`{"extensions":{"x":{}}}`)
	list := tool(`{}`)
	list.Method = mcp.MethodListTools
	notification := tool(`{}`)
	notification.Notification = true
	foreign := tool(`{"name":"x","requestState":"another","inputResponses":{}}`)
	foreign.Meta.Capabilities = []byte(`{}`)
	for name, req := range map[string]*mcp.Request{"nothing declared": without, "a list": list, "a notification": notification, "another's state": foreign} {
		var caller mcp.Caller = new(client)
		allocs := testing.AllocsPerRun(10, func() {
			if _, err := lot.Handle(t.Context(), req, caller); err != nil {
				t.Error(err)
			}
		})
		if got != caller {
			t.Errorf("%s: the caller is another one", name)
		}
		if allocs > 0 && name != "another's state" {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func TestQuestionsThatAreNotPut(t *testing.T) {
	for _, tt := range []struct{ capabilities, method, params string }{
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":"url","url":"https://a"}`},
		{`{"elicitation":{}}`, mcp.MethodCreateMessage, `{}`},
		{`{"sampling":{}}`, mcp.MethodCreateMessage, `{"tools":[]}`},
		{`{"sampling":{}}`, mcp.MethodListRoots, ``},
		{`{"elicitation":{},"sampling":{},"roots":{}}`, "vendor/x", `{}`},
	} {
		t.Run(tt.method, func(t *testing.T) {
			ask := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				return caller.Ask(ctx, &mcp.Request{Method: tt.method, Params: jsonrpc.Trusted([]byte(tt.params))})
			}
			bubble(t, ask, park.Options{}, func(t *testing.T, lot *park.Lot) {
				req := tool(`{"name":"x"}`)
				req.Meta.Capabilities = []byte(tt.capabilities)
				if o := do(t.Context(), lot, req); !errors.Is(o.err, mcp.ErrCannotAsk) || o.kept {
					t.Errorf("got %v", o)
				}
			})
		})
	}
}

func TestQuestionsAsAModernClientGetsThem(t *testing.T) {
	for _, tt := range []struct{ method, params, want string }{
		{mcp.MethodElicit, `{"mode":"url","elicitationId":"e","url":"https://a"}`, `{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`},
		{mcp.MethodElicit, "{ \"message\" : \"\\u00e9\",\n\"n\":1.0 }", `{"method":"elicitation/create","params":{ "message" : "\u00e9","n":1.0 }}`},
		{mcp.MethodCreateMessage, `{"elicitationId":1,"maxTokens":1e2}`, `{"method":"sampling/createMessage","params":{"elicitationId":1,"maxTokens":1e2}}`},
		{mcp.MethodListRoots, ``, `{"method":"roots/list","params":{}}`},
	} {
		t.Run(tt.want, func(t *testing.T) {
			ask := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				return caller.Ask(ctx, &mcp.Request{Method: tt.method, Params: jsonrpc.Trusted([]byte(tt.params))})
			}
			bubble(t, ask, park.Options{}, func(t *testing.T, lot *park.Lot) {
				req := tool(`{"name":"x"}`)
				req.Meta.Capabilities = []byte(`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`)
				first := do(t.Context(), lot, req)
				if got := first.questions(); got != `{"q1":`+tt.want+`}` {
					t.Errorf("asked %s", got)
				}
				if got := do(t.Context(), lot, retry(req, first.state(t), `{"q1":{"z":-0}}`)); got.String() != `{"z":-0}` {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

// TestPartialAnswersAskForTheRest: what is missing or of no use is asked again
// under a new state.
func TestPartialAnswersAskForTheRest(t *testing.T) {
	both := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		var answers [2]string
		var errs [2]error
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i], errs[i] = elicit(ctx, caller, fmt.Sprint(i)) })
			<-time.After(time.Millisecond)
		}
		wg.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return mcp.Result{}, err
		}
		return result(`[` + answers[0] + `,` + answers[1] + `]`)
	}
	const q1 = `"q1":{"method":"elicitation/create","params":{"message":"0"}}`
	const q2 = `"q2":{"method":"elicitation/create","params":{"message":"1"}}`
	bubble(t, both, park.Options{}, func(t *testing.T, lot *park.Lot) {
		o := do(t.Context(), lot, greeting)
		<-time.After(time.Second)
		states := map[string]bool{o.state(t): true}
		for i, step := range []struct{ responses, want string }{
			// The second was asked while the call was parked already.
			{`{"q1":5,"q2":{"guessed":true}}`, q1 + `,` + q2},
			{`null`, q1 + `,` + q2},
			{`[]`, q1 + `,` + q2},
			{`{"q1":"accept","q2":{"b":1}}`, q1},
			{`{"q2":{"late":1}}`, q1},
		} {
			o = do(t.Context(), lot, retry(greeting, o.state(t), step.responses))
			if got := o.questions(); got != `{`+step.want+`}` {
				t.Errorf("%d: asked %s", i, got)
			}
			states[o.state(t)] = true
		}
		if len(states) != 6 {
			t.Errorf("%d states", len(states))
		}
		for state := range states {
			if state == o.state(t) {
				continue
			}
			if got := do(t.Context(), lot, retry(greeting, state, `{"q1":{"x":1}}`)); !strings.Contains(got.String(), "-32602: Invalid params: requestState was used already") {
				t.Errorf("an old state gives %v", got)
			}
		}
		if o = do(t.Context(), lot, retry(greeting, o.state(t), `{"q1":{"a":1}}`)); o.String() != `{"text":[{"a":1},{"b":1}]}` {
			t.Errorf("got %v", o)
		}
	})
}

// TestStatesThatAreRefused_TG5: with no effect on the call.
func TestStatesThatAreRefused_TG5(t *testing.T) {
	bubble(t, greet, park.Options{}, func(t *testing.T, lot *park.Lot) {
		mine := of(tool(`{"name":"greet"}`), "i", "me")
		state := do(t.Context(), lot, mine).state(t)
		dot := strings.LastIndex(state, ".") + 1
		refused := func(name string, req *mcp.Request, want string) {
			t.Helper()
			if got := do(t.Context(), lot, req).String(); got != "error -32602: Invalid params: requestState "+want+" (-32602)" {
				t.Errorf("%s: %s", name, got)
			}
		}
		const forged = "is not one of this server's"
		for i := dot; i < len(state); i++ {
			changed := []byte(state)
			changed[i] ^= 3
			refused("changed", retry(mine, string(changed), `{"q1":{}}`), forged)
		}
		refused("cut off", retry(mine, state[:len(state)-4], `{"q1":{}}`), forged)
		refused("name only", retry(mine, state[:dot], `{"q1":{}}`), forged)
		refused("another principal", retry(of(tool(`{"name":"greet"}`), "i", "you"), state, `{"q1":{}}`), forged)
		refused("anonymous", retry(tool(`{"name":"greet"}`), state, `{"q1":{}}`), forged)
		refused("another tool", retry(of(tool(`{"name":"other"}`), "i", "me"), state, `{"q1":{}}`), "belongs to another request")
		refused("other arguments", retry(of(tool(`{"name":"greet","arguments":{}}`), "i", "me"), state, `{"q1":{}}`), "belongs to another request")
		prompt := retry(mine, state, `{"q1":{}}`)
		prompt.Method = mcp.MethodGetPrompt
		refused("another method", prompt, "belongs to another request")
		if got := do(t.Context(), lot, retry(mine, state, `{"q1":{"a":1}}`)); got.String() != `{"text":{"a":1}}` {
			t.Errorf("got %v", got)
		}
		refused("used", retry(mine, state, `{"q1":{}}`), "was used already")
		expired := do(t.Context(), lot, mine).state(t)
		<-time.After(park.DefaultLife)
		refused("expired", retry(mine, expired, `{"q1":{}}`), "has expired")
	})
}

// TestStateIsUsedOnce: of retries at the same time one is taken.
func TestStateIsUsedOnce(t *testing.T) {
	bubble(t, greet, park.Options{}, func(t *testing.T, lot *park.Lot) {
		state := do(t.Context(), lot, greeting).state(t)
		var all []<-chan *outcome
		for range 8 {
			all = append(all, start(t.Context(), lot, retry(greeting, state, `{"q1":{"a":1}}`)))
		}
		done := 0
		for _, c := range all {
			if got := (<-c).String(); got == `{"text":{"a":1}}` {
				done++
			} else if !strings.Contains(got, "was used already") {
				t.Error(got)
			}
		}
		if done != 1 {
			t.Errorf("%d were taken", done)
		}
	})
}

// TestStatesOfOtherInstancesPass: one lot may stand behind another.
func TestStatesOfOtherInstancesPass_B151(t *testing.T) {
	inner := park.New(mcp.HandlerFunc(greet), park.Options{})
	defer inner.Close()
	// A modern connection cannot be asked: results pass as they are.
	outer := park.New(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		return inner.Handle(ctx, req, mcp.NoCaller{})
	}), park.Options{})
	defer outer.Close()
	state := do(t.Context(), outer, greeting).state(t)
	if outer.Len() != 0 || inner.Len() != 1 {
		t.Errorf("%d and %d calls are parked", outer.Len(), inner.Len())
	}
	if got := do(t.Context(), outer, retry(greeting, state, `{"q1":{"a":1}}`)); got.String() != `{"text":{"a":1}}` {
		t.Errorf("got %v", got)
	}
}

package gateway_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// needy has a tool, a prompt and a resource that need input, and says how often it was
// given some.
func needy(name string) (b *fake, given func() int) {
	b = newFake("x")
	b.answer(mcp.MethodListPrompts, `{"prompts":[{"name":"x"}]}`)
	b.answer(mcp.MethodListResources, `{"resources":[{"uri":"x:1","name":"r"}]}`)
	n := 0
	for _, method := range []string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource} {
		b.handle(method, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if _, retry := req.Params.Lookup("inputResponses"); retry {
				n++
				return mcp.RawResult(fmt.Appendf(nil, `{"from":%q}`, name)), nil
			}
			return mcp.RawResult([]byte(`{"resultType":"input_required","requestState":"s","inputRequests":{}}`)), nil
		})
	}
	return b, func() int { return n }
}

const given = `,"requestState":"s","inputResponses":{"password":{"content":"p"}}}`

// TestAnswersAreForWhoHasAsked: what the user has answered, and the state, go to no other
// server, not even to one that has taken the place of the one that asked.
func TestAnswersAreForWhoHasAsked_TG5(t *testing.T) {
	for method, params := range map[string]string{
		mcp.MethodCallTool: `{"name":"x"`, mcp.MethodGetPrompt: `{"name":"x"`, mcp.MethodReadResource: `{"uri":"x:1"`,
	} {
		t.Run(method, func(t *testing.T) {
			one, first := needy("one")
			two, second := needy("two")
			g := newGateway(t, unhurried, map[string]mcp.Handler{"one": one})
			do(t, g, method, params+`}`)
			if do(t, g, method, params+given); first() != 1 {
				t.Errorf("%d answers reach who has asked", first())
			}
			do(t, g, method, params+`}`)
			g.Remove("one")
			add(t, g, "two", two)
			_, err := g.Handle(t.Context(), request(method, params+given), mcp.NoCaller{})
			if second() != 0 || jsonrpc.ToWire(err).Code != jsonrpc.CodeInvalidParams {
				t.Errorf("another one is given %d answers: %v", second(), err)
			}
			do(t, g, method, params+`}`) // begun anew
			if do(t, g, method, params+given); second() != 1 {
				t.Errorf("%d answers reach who has asked then", second())
			}
		})
	}
}

// TestAnswersMayComeWithANewToken: the user has taken time.
func TestAnswersMayComeWithANewToken(t *testing.T) {
	a := library("a", "x:/{name}")
	b, answers := needy("b")
	b.answer(mcp.MethodListResources, `{"resources":[]}`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	before, after := modern, modern
	before.Grant, after.Grant = "before", "after"
	doAs(t, g, before, mcp.MethodReadResource, `{"uri":"x:1"}`)
	doAs(t, g, after, mcp.MethodReadResource, `{"uri":"x:1"`+given)
	if answers() != 1 {
		t.Errorf("%d answers reach who has asked", answers())
	}
}

package park_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

// TestPagesThatALegacyServerRequires: its error becomes a question, and the retry
// a call like the first.
func TestPagesThatALegacyServerRequires(t *testing.T) {
	var got []string
	done := false
	require := func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		got = append(got, string(req.Params.Raw()))
		if done {
			answer, err := elicit(ctx, caller, "?")
			if err != nil {
				return mcp.Result{}, err
			}
			return result(answer)
		}
		return mcp.Result{}, &jsonrpc.Error{Code: jsonrpc.CodeURLElicitationRequired, Message: "first", Data: jsonrpc.Trusted([]byte(
			`{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://a"},{"mode":"url","url":"https://b","elicitationId":"2"}]}`))}
	}
	bubble(t, require, park.Options{}, func(t *testing.T, lot *park.Lot) {
		req := tool(`{"name":"x","arguments":{"n":1.0}}`)
		req.Meta.Capabilities = []byte(`{"elicitation":{"form":{},"url":{}}}`)
		o := do(t.Context(), lot, req)
		for range 2 { // the user is not done at once
			want := `{"q1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}},"q2":{"method":"elicitation/create","params":{"mode":"url","url":"https://b"}}}`
			if got := o.questions(); got != want || lot.Len() != 0 {
				t.Errorf("asked %s, %d calls are parked", got, lot.Len())
			}
			o = do(t.Context(), lot, retry(req, o.state(t), `{"q1":{"action":"accept"},"q2":{"action":"accept"}}`))
		}
		done = true
		o = do(t.Context(), lot, retry(req, o.state(t), `{"q1":{"action":"accept"},"q2":{"action":"accept"}}`))
		if o = do(t.Context(), lot, retry(req, o.state(t), `{"q1":{"a":1}}`)); o.String() != `{"text":{"a":1}}` {
			t.Errorf("got %v", o)
		}
		for _, params := range got {
			if params != `{"name":"x","arguments":{"n":1.0}}` {
				t.Errorf("the server got %s", params)
			}
		}
	})
}

func TestPagesThatCannotBeRequired(t *testing.T) {
	const url = `{"mode":"url","url":"https://a"}`
	for _, tt := range []struct{ capabilities, data, want string }{
		{`{"elicitation":{}}`, `{"elicitations":[` + url + `]}`, "error -32021"},
		{`{}`, `{"elicitations":[` + url + `]}`, "error -32021"},
		{`{"elicitation":{"url":{}}}`, `{"elicitations":[]}`, "error -32042"},
		{`{"elicitation":{"url":{}}}`, `{"elicitations":[` + url + `,{"mode":"form"}]}`, "error -32042"},
		{`{"elicitation":{"url":{}}}`, `{"elicitations":[` + url + strings.Repeat(`,`+url, park.MaxQuestions) + `]}`, "error -32042"},
		{`{"elicitation":{"url":{}}}`, `null`, "error -32042"},
		{`{"elicitation":{"url":{}}}`, ``, "error -32042"},
	} {
		t.Run(fmt.Sprintf("%s %.60s", tt.capabilities, tt.data), func(t *testing.T) {
			require := func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
				return mcp.Result{}, &jsonrpc.Error{Code: jsonrpc.CodeURLElicitationRequired, Data: jsonrpc.Trusted([]byte(tt.data))}
			}
			bubble(t, require, park.Options{}, func(t *testing.T, lot *park.Lot) {
				req := tool(`{"name":"x"}`)
				req.Meta.Capabilities = []byte(tt.capabilities)
				if got := do(t.Context(), lot, req).String(); !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// TestPagesThatTheUserDoesNotOpen: the call ends. Made anew, it would ask for them
// again and again.
func TestPagesThatTheUserDoesNotOpen(t *testing.T) {
	calls := 0
	require := func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		calls++
		return mcp.Result{}, &jsonrpc.Error{Code: jsonrpc.CodeURLElicitationRequired, Data: jsonrpc.Trusted([]byte(
			`{"elicitations":[{"mode":"url","url":"https://a"},{"mode":"url","url":"https://b"}]}`))}
	}
	bubble(t, require, park.Options{}, func(t *testing.T, lot *park.Lot) {
		req := tool(`{"name":"x"}`)
		req.Meta.Capabilities = []byte(`{"elicitation":{"url":{}}}`)
		o := do(t.Context(), lot, req)
		for _, odd := range []string{`5`, `{}`, `{"q1":null}`, `{"q1":{"action":7},"q2":[]}`} { // nobody has declined
			if o = do(t.Context(), lot, retry(req, o.state(t), odd)); o.err != nil {
				t.Errorf("%s: %v", odd, o)
			}
		}
		for _, action := range []string{"decline", "cancel"} {
			calls = 0
			o = do(t.Context(), lot, req)
			o = do(t.Context(), lot, retry(req, o.state(t), `{"q1":{"action":"accept"},"q2":{"action":"`+action+`"}}`))
			if e, ok := errors.AsType[*mcp.CallError](o.err); !ok || e.Kind != mcp.Cancelled || e.Outcome != mcp.Answered || calls != 1 {
				t.Errorf("%s: got %v after %d calls", action, o, calls)
			}
		}
	})
}

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// peerError returns an error as a peer sent it.
func peerError(t testing.TB, raw string) *jsonrpc.Error {
	t.Helper()
	v := value(t, raw)
	return jsonrpc.ReadError(&v)
}

func TestFailureOfACallIsToldHereAndThere(t *testing.T) {
	secret := errors.New("/home/user/secret: exit status 1")
	for _, c := range []struct {
		name       string
		in         mcp.CallError
		text, wire string
	}{
		{
			"B148 everything", mcp.CallError{Method: "tools/call", Kind: mcp.LimitExceeded, Outcome: mcp.NotSent, Limit: "MaxCalls", Err: secret, Public: "try later"},
			"tools/call: limit exceeded (MaxCalls), not sent: /home/user/secret: exit status 1",
			`{"code":-32603,"message":"Internal error: limit exceeded: try later","data":{"mcpsplice":{"kind":"limit exceeded","outcome":"not sent","limit":"MaxCalls"}}}`,
		},
		{
			"B148 cause without a word for the public", mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: secret},
			"connection lost, maybe executed: /home/user/secret: exit status 1",
			`{"code":-32603,"message":"Internal error: connection lost","data":{"mcpsplice":{"kind":"connection lost","outcome":"maybe executed"}}}`,
		},
		{
			"B148 no cause", mcp.CallError{Method: "tools/call", Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "it is no JSON"},
			"tools/call: bad reply, answered: it is no JSON",
			`{"code":-32603,"message":"Internal error: bad reply: it is no JSON","data":{"mcpsplice":{"kind":"bad reply","outcome":"answered"}}}`,
		},
		{
			"B148 kind alone", mcp.CallError{Kind: mcp.TimedOut}, "timed out",
			`{"code":-32603,"message":"Internal error: timed out","data":{"mcpsplice":{"kind":"timed out"}}}`,
		},
		{
			"B148 nothing", mcp.CallError{}, "",
			`{"code":-32603,"message":"Internal error: ","data":{"mcpsplice":{"kind":""}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.in.Error(); got != c.text {
				t.Errorf("here  %s\nwant  %s", got, c.text)
			}
			wire := string(jsonrpc.AppendError(nil, jsonrpc.IntID(1), c.in.ToWire()))
			if want := `{"jsonrpc":"2.0","id":1,"error":` + c.wire + `}`; wire != want {
				t.Errorf("there %s\nwant  %s", wire, want)
			}
			if strings.Contains(wire, "secret") {
				t.Error("the cause is told to the peer")
			}
			wrapped := fmt.Errorf("calling: %w", &c.in)
			if got := jsonrpc.ToWire(wrapped); got.Message != c.in.ToWire().Message {
				t.Errorf("wrapped it is told as %v", got)
			}
			if c.in.Err != nil && !errors.Is(wrapped, secret) {
				t.Error("the cause is not found")
			}
		})
	}
}

func TestEveryKindOfFailureHasACode(t *testing.T) {
	for _, kind := range []mcp.FailureKind{
		mcp.Cancelled, mcp.TimedOut, mcp.ConnectionLost, mcp.Unreachable, mcp.BadReply, mcp.LimitExceeded, mcp.Unsupported, "\xff",
	} {
		for _, outcome := range []mcp.Outcome{"", mcp.NotSent, mcp.MaybeExecuted, mcp.Answered} {
			e := &mcp.CallError{Kind: kind, Outcome: outcome}
			if wire := e.ToWire(); wire.Code != jsonrpc.CodeInternalError || jsonrpc.FromPeer(wire) {
				t.Errorf("B148 %s, %s: %v", kind, outcome, wire)
			}
		}
	}
}

func TestOutcomeOfAnError(t *testing.T) {
	peer := peerError(t, `{"code":12345,"message":""}`)
	for _, c := range []struct {
		name string
		err  error
		want mcp.Outcome
	}{
		{"not sent", &mcp.CallError{Outcome: mcp.NotSent}, mcp.NotSent},
		{"wrapped", fmt.Errorf("x: %w", &mcp.CallError{Outcome: mcp.Answered}), mcp.Answered},
		{"joined", errors.Join(io.EOF, &mcp.CallError{Outcome: mcp.NotSent}), mcp.NotSent},
		{"B148 the peer's own", peer, mcp.Answered},
		{"B148 the peer's own, wrapped", fmt.Errorf("x: %w", peer), mcp.Answered},
		{"of a call that a peer's error made fail", &mcp.CallError{Outcome: mcp.NotSent, Err: peer}, mcp.NotSent},
		{"made here", jsonrpc.Errorf(-32602, "x"), mcp.MaybeExecuted},
		{"any other", io.ErrUnexpectedEOF, mcp.MaybeExecuted},
		{"cancelled", context.Canceled, mcp.MaybeExecuted},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mcp.OutcomeOf(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCallThatHasBegunIsNotUnsent(t *testing.T) {
	unsent := &mcp.CallError{Method: "m", Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: io.EOF}
	got := mcp.Begun(fmt.Errorf("x: %w", unsent))
	if mcp.OutcomeOf(got) != mcp.MaybeExecuted || !errors.Is(got, io.EOF) || unsent.Outcome != mcp.NotSent {
		t.Errorf("got %v", got)
	}
	for _, err := range []error{nil, io.EOF, &mcp.CallError{Outcome: mcp.Answered}} {
		if got := mcp.Begun(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestUnsupportedRevisionSaysWhatIsServed(t *testing.T) {
	for _, c := range []struct {
		name      string
		requested mcp.Revision
		supported []mcp.Revision
		want      string
	}{
		{"one", "2099-01-01", []mcp.Revision{"2026-07-28"}, `{"supported":["2026-07-28"],"requested":"2099-01-01"}`},
		{"several", "", []mcp.Revision{"2026-07-28", "2025-11-25"}, `{"supported":["2026-07-28","2025-11-25"],"requested":""}`},
		{"none", "x", nil, `{"supported":[],"requested":"x"}`},
		{"quotes", `"`, []mcp.Revision{"2026-07-28"}, `{"supported":["2026-07-28"],"requested":"\""}`},
		{"header that is not UTF-8", "\xff", []mcp.Revision{"2026-07-28"}, `{"supported":["2026-07-28"],"requested":"�"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := mcp.UnsupportedRevision(c.requested, c.supported)
			if e.Code != jsonrpc.CodeUnsupportedVersion || string(e.Data.Raw()) != c.want {
				t.Errorf("got %v %s", e, e.Data.Raw())
			}
			if got := mcp.SupportedIn(e); !slices.Equal(got, c.supported) {
				t.Errorf("read back as %q", got)
			}
			if got := mcp.IsModernError(e); got != (len(c.supported) > 0) {
				t.Errorf("counts as modern: %t", got)
			}
		})
	}
}

func TestModernErrorsAreRecognized(t *testing.T) {
	for _, c := range []struct {
		in   string
		want bool
	}{
		{`{"code":-32020,"message":"Header mismatch"}`, true},
		{`{"code":-32021,"message":"","data":{"requiredCapabilities":{}}}`, true},
		{`{"code":-32022,"message":"","data":{"supported":["2026-07-28"],"requested":"2099-01-01"}}`, true},
		{`{"code":-32022,"message":""}`, false},
		{`{"code":-32022,"message":"","data":{"supported":[1]}}`, false},
		{`{"code":-32022,"message":"","data":"2026-07-28"}`, false},
		{`{"code":-32000,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}`, false},
		{`{"code":-32601,"message":"Method not found"}`, false},
		{`{"code":-32602,"message":"x","data":{"supported":["2026-07-28"]}}`, false},
		{`{}`, false},
	} {
		t.Run(c.in, func(t *testing.T) {
			if got := mcp.IsModernError(peerError(t, c.in)); got != c.want {
				t.Errorf("counts as modern: %t", got)
			}
		})
	}
}

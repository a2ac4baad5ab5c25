package jsonrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func TestErrorsOfAPeerArePassedOn(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"B148 nested data", `{"code":-32602,"message":"no","data":{"a":[1.0,{"b":"\u00e9"}]}}`, ""},
		{"B148 any code", `{"code":12345,"message":"x"}`, ""},
		{"B148 code of MCP", `{"code":-32042,"message":"x","data":{"elicitations":[]}}`, ""},
		{"B148 message empty", `{"code":-32000,"message":""}`, ""},
		{"B148 data null", `{"code":1,"message":"x","data":null}`, ""},
		{"B148 data string", `{"code":1,"message":"x","data":"y"}`, ""},
		{"B148 data array", `{"code":1,"message":"x","data":[]}`, ""},
		{"other members and their order", `{"message":"x","details":{"a":[1.50]},"code":1,"Data":2,"data":3,"trace":"t"}`, ""},
		{"escapes in the message", `{"code":1,"message":"\ud800\u0041\/"}`, ""},
		{"data twice", `{"code":1,"message":"x","data":1,"data":1}`, `{"code":1,"message":"x","data":1}`},
		{"other members with line breaks", "{\"code\":1,\n\"message\":\"x\",\"more\":[\n]}", `{"code":1,"message":"x","more":[]}`},
		{"message absent", `{"code":1}`, `{"code":1,"message":""}`},
		{"message no string", `{"code":1,"message":{"a":1}}`, `{"code":1,"message":""}`},
		{"line breaks in data", "{\"code\":1,\"message\":\"\",\"data\":[\r\n1\n]}", `{"code":1,"message":"","data":[1]}`},
		{"B148 code fractional", `{"code":1.5,"message":"x"}`, `{"code":-32603,"message":"x","data":{"code":1.5,"message":"x"}}`},
		{"B148 code string", `{"code":"E1","message":"x","data":1}`, `{"code":-32603,"message":"x","data":{"code":"E1","message":"x","data":1}}`},
		{"B148 code absent", `{"message":"x"}`, `{"code":-32603,"message":"x","data":{"message":"x"}}`},
		{"B148 code null", `{"code":null,"message":"x"}`, `{"code":-32603,"message":"x","data":{"code":null,"message":"x"}}`},
		{"B148 code 0", `{"code":0,"message":"x","data":[1]}`, ""}, // of the Python SDK, for whatever a handler raises
		{"B148 code -0", `{"code":-0,"message":"x"}`, `{"code":0,"message":"x"}`},
		{"B148 code too large", `{"code":12345678901234567890123,"message":"x"}`, `{"code":-32603,"message":"x","data":{"code":12345678901234567890123,"message":"x"}}`},
		{"B148 nothing", `{}`, `{"code":-32603,"message":"","data":{}}`},
		{"B148 illegal with line breaks", "{\n}", `{"code":-32603,"message":"","data":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m jsonrpc.Message
			if err := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":1,"error":`+c.in+`}`), &m); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == "" {
				want = c.in
			}
			e := jsonrpc.ReadError(&m.Body)
			if got, want := string(jsonrpc.AppendError(nil, m.ID, e)), `{"jsonrpc":"2.0","id":1,"error":`+want+`}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !jsonrpc.FromPeer(e) || !jsonrpc.FromPeer(fmt.Errorf("calling: %w", e)) {
				t.Error("it is not known to be the peer's")
			}
		})
	}
}

func TestChangedErrorKeepsOtherMembers(t *testing.T) {
	whole := jsonrpc.Trusted([]byte(`{"more":1,"code":-32002,"message":"x","data":{}}`))
	e := jsonrpc.ReadError(&whole)
	e.Code, e.Message, e.Data = jsonrpc.CodeInvalidParams, "y", jsonrpc.Value{}
	want := `{"jsonrpc":"2.0","id":1,"error":{"more":1,"code":-32602,"message":"y"}}`
	if got := string(jsonrpc.AppendError(nil, jsonrpc.IntID(1), e)); got != want {
		t.Errorf("got %s", got)
	}
}

type limitError struct{}

func (limitError) Error() string          { return "secret detail" }
func (limitError) ToWire() *jsonrpc.Error { return jsonrpc.Errorf(-32000, "limit %d", 3) }

func TestErrorsAreConvertedForThePeer(t *testing.T) {
	own := jsonrpc.Errorf(-32602, "no %s", "tool")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"Error", own, `{"code":-32602,"message":"no tool"}`},
		{"wrapped Error", fmt.Errorf("calling: %w", own), `{"code":-32602,"message":"no tool"}`},
		{"no code", &jsonrpc.Error{Message: "x"}, `{"code":-32603,"message":"x"}`},
		{"knows its wire form", fmt.Errorf("x: %w", limitError{}), `{"code":-32000,"message":"limit 3"}`},
		{"deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), `{"code":-32603,"message":"Internal error: timed out"}`},
		{"cancelled", context.Canceled, `{"code":-32603,"message":"Internal error: cancelled"}`},
		{"foreign", errors.New("password is hunter2"), `{"code":-32603,"message":"Internal error"}`},
		{"none", nil, `{"code":-32603,"message":"Internal error"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(jsonrpc.AppendNullError(nil, jsonrpc.ToWire(c.err)))
			if want := `{"jsonrpc":"2.0","id":null,"error":` + c.want + `}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if jsonrpc.FromPeer(c.err) {
				t.Error("it is taken for a peer's")
			}
		})
	}
}

func TestErrorsAreComparedByCode(t *testing.T) {
	err := fmt.Errorf("x: %w", jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", "m"))
	if !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}) {
		t.Error("an error of the same code is another error")
	}
	if errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInternalError}) || errors.Is(err, io.EOF) {
		t.Error("an error of another code is the same error")
	}
}

func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		`no tool (-32602)`: &jsonrpc.Error{Code: -32602, Message: "no tool"},
		`error -32602`:     &jsonrpc.Error{Code: -32602},
		`line of 12 bytes is longer than the limit MaxLine of 10`: &jsonrpc.LineTooLongError{Limit: 10, Seen: 12},
		`duplicate member "a\n" in params`:                        &jsonrpc.DuplicateError{Where: "params", Name: "a\n"},
		`invalid JSON at byte 3: x`:                               &jsonrpc.SyntaxError{Offset: 3, Reason: "x"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

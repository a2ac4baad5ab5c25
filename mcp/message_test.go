package mcp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func TestParamsAndResultsAreEncoded(t *testing.T) {
	type params struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Tags      []string       `json:"tags"`
		Cursor    string         `json:"cursor,omitempty"`
	}
	raw := value(t, `{ "a" : 9007199254740993 }`)
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"none", nil, ``},
		{"a value as it is", raw, `{ "a" : 9007199254740993 }`},
		{"an absent value", jsonrpc.Value{}, ``},
		{"B031 a struct without arguments", params{Name: "<a>"}, `{"name":"<a>","arguments":{},"tags":[]}`},
		{"a pointer", &params{Name: "a", Tags: []string{"x"}, Cursor: "c"}, `{"name":"a","arguments":{},"tags":["x"],"cursor":"c"}`},
		{"B017 large integers", map[string]int64{"id": 9007199254740993}, `{"id":9007199254740993}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := mcp.NewRequest("m", c.in)
			if err != nil {
				t.Fatal(err)
			}
			if req.Method != "m" || req.Notification || string(req.Params.Raw()) != c.want {
				t.Errorf("request %+v, params %s", req, req.Params.Raw())
			}
			n, err := mcp.NewNotification("m", c.in)
			if err != nil {
				t.Fatal(err)
			}
			if n.Method != "m" || string(n.Params.Raw()) != c.want {
				t.Errorf("notification %s %s", n.Method, n.Params.Raw())
			}
			r, err := mcp.NewResult(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Raw()) != c.want {
				t.Errorf("result %s", r.Raw())
			}
		})
	}
}

func TestWhatCannotBeEncodedIsRefused(t *testing.T) {
	for name, v := range map[string]any{
		"a channel": make(chan int),
		"not UTF-8": map[string]string{"a": "\xff"},
		// These hold raw JSON that nothing would write.
		"a pointer to a value": new(jsonrpc.Value),
		"a result":             mcp.RawResult([]byte(`{"a":1}`)),
	} {
		t.Run(name, func(t *testing.T) {
			if req, err := mcp.NewRequest("m", v); err == nil {
				t.Errorf("request with params %s", req.Params.Raw())
			}
			if n, err := mcp.NewNotification("m", v); err == nil {
				t.Errorf("notification with params %s", n.Params.Raw())
			}
			if r, err := mcp.NewResult(v); err == nil {
				t.Errorf("result %s", r.Raw())
			}
		})
	}
}

func TestTypeOfAResult(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"B113 absent counts as complete", `{"capabilities":{"tools":{}},"supportedVersions":["2026-07-28"]}`, mcp.Complete},
		{"B113 empty result", ``, mcp.Complete},
		{"B113 complete", `{"resultType":"complete"}`, mcp.Complete},
		{"B113 escaped", `{"resultType":"complet\u0065"}`, mcp.Complete},
		{"B113 input required", `{"resultType":"input_required"}`, mcp.InputRequired},
		{"B113 of a vendor", `{"resultType":"vendor"}`, "vendor"},
		{"B113 no string", `{"resultType":1}`, ""},
		{"B113 null", `{"resultType":null}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := result(t, c.in).Type(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRequestsOfOneClientHaveOneKey(t *testing.T) {
	all := []mcp.Metadata{
		{},
		{Session: "s"},
		{Session: "t"},
		{Client: []byte(`{"name":"c"}`)},
		{Client: []byte(`{"name":"d"}`)},
		{Principal: mcp.Principal{Issuer: "i"}},
		{Principal: mcp.Principal{Subject: "i"}},
		{Principal: mcp.Principal{Issuer: "i", Subject: "s"}},
		{Principal: mcp.Principal{Issuer: "i", Subject: "s"}, Client: []byte(`{"name":"c"}`)},
		{Principal: mcp.Principal{Issuer: "i", Subject: "s\x00" + `{"name":"c"}`}},
		{Principal: mcp.Principal{Issuer: "i\x00s"}},
		{Principal: mcp.Principal{Issuer: "i", Subject: "s\x00"}},
		{Principal: mcp.Principal{Issuer: `i""s`}},
	}
	seen := make(map[string]int)
	for i := range all {
		key := all[i].ClientKey()
		if j, ok := seen[key]; ok {
			t.Errorf("%+v and %+v have one key", all[i], all[j])
		}
		seen[key] = i
		same := all[i]
		same.LogLevel, same.Revision, same.ProgressToken = "info", "2026-07-28", jsonrpc.IntID(1)
		if same.ClientKey() != key {
			t.Errorf("two requests of %+v have two keys", all[i])
		}
	}
	long := func(last string) string {
		m := mcp.Metadata{Client: []byte(`{"name":"` + strings.Repeat("x", 1<<20) + last + `"}`)}
		return m.ClientKey()
	}
	if a, b := long("a"), long("b"); a == b || a != long("a") || len(a) > 200 {
		t.Errorf("clients with long names have keys of %d bytes, the same for both: %t", len(a), a == b)
	}
	one := mcp.Metadata{Session: "s", Client: []byte(`{}`), Principal: mcp.Principal{Subject: "p"}}
	if other := (&mcp.Metadata{Session: "s"}); one.ClientKey() != other.ClientKey() {
		t.Error("two requests of one session have two keys")
	}
}

func TestFunctionIsAHandler(t *testing.T) {
	type key struct{}
	want := &mcp.Request{Method: "m"}
	var h mcp.Handler = mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if ctx.Value(key{}) != 1 || req != want || caller != (mcp.NoCaller{}) {
			t.Errorf("called with %v, %v, %v", ctx, req, caller)
		}
		return mcp.RawResult([]byte(` {"a":1.0} `)), io.EOF
	})
	got, err := h.Handle(context.WithValue(t.Context(), key{}, 1), want, mcp.NoCaller{})
	if string(got.Raw()) != `{"a":1.0}` || err != io.EOF {
		t.Errorf("got %s, %v", got.Raw(), err)
	}
}

func TestNobodyCannotBeAsked(t *testing.T) {
	var nobody mcp.Caller = mcp.NoCaller{}
	if err := nobody.Notify(t.Context(), &mcp.Notification{Method: mcp.NotificationProgress}); err != nil {
		t.Errorf("notifying: %v", err)
	}
	got, err := nobody.Ask(t.Context(), &mcp.Request{Method: mcp.MethodElicit})
	if !errors.Is(err, mcp.ErrCannotAsk) || !got.IsZero() {
		t.Errorf("asking: %s, %v", got.Raw(), err)
	}
}

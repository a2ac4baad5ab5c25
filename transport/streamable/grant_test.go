package streamable_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestGrantIsOfTheToken: who keeps results keeps those of two tokens apart.
func TestGrantIsOfTheToken_B155(t *testing.T) {
	grants := make(chan string, 10)
	opts := strictServer(t)
	opts.Principal = func(*http.Request) mcp.Principal { return mcp.Principal{Subject: "ann"} }
	b := serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			grants <- req.Meta.Grant
		}
		return echo(ctx, req, caller)
	}), opts)
	r := b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("", "Authorization", "Bearer one"))
	id := r.header.Get("Mcp-Session-Id")
	var got []string
	for _, token := range []string{"Bearer one", "Bearer two", "Bearer one", ""} {
		var pair []string
		if token != "" {
			pair = []string{"Authorization", token}
		}
		b.do(t, "POST", legacyRequest("1", "tools/list", "{}"), legacyHeader(id, pair...))
		got = append(got, <-grants)
		b.modern(t, modernRequest("1", "tools/list", ""), pair...)
		got = append(got, <-grants)
	}
	one, two := got[0], got[2]
	if !slices.Equal(got, []string{one, one, two, two, one, one, "", ""}) || one == two || one == "" {
		t.Errorf("the grants are %q", got)
	}
	if strings.Contains(one, "one") {
		t.Errorf("the token is told: %q", one)
	}
}

// TestSessionBeginsWithItsGrant: what it asks for itself when it begins is of the token
// that it was begun with.
func TestSessionBeginsWithItsGrant_B155(t *testing.T) {
	grants := make(chan string, 10)
	b := serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			grants <- req.Meta.Grant
		}
		return echo(ctx, req, caller)
	}), strictServer(t))
	for name, begin := range map[string]func(token string){
		"Streamable HTTP": func(token string) {
			b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("", "Authorization", token))
		},
		"HTTP with SSE": func(token string) {
			openSSE(t, b.at("/sse"), "Authorization", token).initialize(t, "2024-11-05")
		},
	} {
		var got []string
		for _, token := range []string{"Bearer one", "Bearer two"} {
			begin(token)
			got = append(got, await(t, grants))
		}
		if got[0] == "" || got[1] == "" || got[0] == got[1] {
			t.Errorf("%s: the grants are %q", name, got)
		}
	}
}

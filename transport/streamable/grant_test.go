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

// TestGrantOfAHandshakeIsOfTheToken: what is asked of the handler for initialize, too.
func TestGrantOfAHandshakeIsOfTheToken_B155(t *testing.T) {
	grants := make(chan string, 10)
	b := serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			grants <- req.Meta.Grant
		}
		return echo(ctx, req, caller)
	}), strictServer(t))
	for _, token := range []string{"Bearer one", "Bearer two"} {
		b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("", "Authorization", token))
	}
	if one, two := await(t, grants), await(t, grants); one == "" || two == "" || one == two {
		t.Errorf("the grants are %q and %q", one, two)
	}
}

// TestGrantOfAnOldClientIsOfItsStream: over HTTP with SSE that is what opens the session.
func TestGrantOfAnOldClientIsOfItsStream_B155(t *testing.T) {
	grants := make(chan string, 10)
	b := sseAt(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			grants <- req.Meta.Grant
		}
		return echo(ctx, req, caller)
	}), strictServer(t))
	for _, token := range []string{"Bearer one", "Bearer two"} {
		c := openSSE(t, b, "Authorization", token)
		c.initialize(t, "2024-11-05")
		c.say(t, legacyRequest("1", "tools/list", "{}"))
	}
	if one, two := await(t, grants), await(t, grants); one == "" || two == "" || one == two {
		t.Errorf("the grants are %q and %q", one, two)
	}
}

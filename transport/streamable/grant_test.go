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

package cli_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want cli.ExitCode
	}{
		{errors.New("x"), cli.ExitUnexpected},
		{&streamable.AuthError{Status: 401}, cli.ExitUnauthorized},
		{&mcp.CallError{Kind: mcp.BadReply, Err: &streamable.AuthError{Status: 403}}, cli.ExitUnauthorized},
		{&mcp.CallError{Kind: mcp.BadReply, Err: &streamable.StatusError{Status: 502}}, cli.ExitUnreachable},
		{&mcp.CallError{Kind: mcp.BadReply, Err: &streamable.StatusError{Status: 404}}, cli.ExitMismatch},
		{&mcp.CallError{Kind: mcp.BadReply, Err: &streamable.StatusError{Status: 403}}, cli.ExitUnauthorized},
		{&mcp.CallError{Kind: mcp.BadReply, Err: &streamable.StatusError{Status: 429}}, cli.ExitUnreachable},
		{&mcp.CallError{Kind: mcp.Unreachable}, cli.ExitUnreachable},
		{&mcp.CallError{Kind: mcp.ConnectionLost}, cli.ExitUnreachable},
		{&mcp.CallError{Kind: mcp.TimedOut}, cli.ExitTimedOut},
		{&mcp.CallError{Kind: mcp.LimitExceeded}, cli.ExitUnexpected},
		{session.ErrRevision, cli.ExitMismatch},
		{mcp.UnsupportedRevision("2099-01-01", nil), cli.ExitMismatch},
		{jsonrpc.Errorf(jsonrpc.CodeInternalError, "x"), cli.ExitUnexpected},
		{(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted}).ToWire(), cli.ExitUnreachable},
		{(&mcp.CallError{Kind: mcp.TimedOut, Outcome: mcp.MaybeExecuted}).ToWire(), cli.ExitTimedOut},
		{context.DeadlineExceeded, cli.ExitTimedOut},
	} {
		t.Run(fmt.Sprintf("%v", tt.err), func(t *testing.T) {
			if got := cli.CodeOf(fmt.Errorf("connecting: %w", tt.err)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestPagesThatACallWantsAreTold(t *testing.T) {
	data := jsonrpc.Trusted([]byte(`{"elicitations":[{"mode":"url","url":"https://a.example/","elicitationId":"1"},{"url":7},{"url":"https://b.example/"}]}`))
	err := &jsonrpc.Error{Code: jsonrpc.CodeURLElicitationRequired, Message: "x", Data: data}
	want := "visit https://a.example/ and https://b.example/ if you trust it, then call again"
	if got := cli.HintOf(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorsThatSomethingCanBeDoneAbout(t *testing.T) {
	needs := func(capability string) error {
		data := jsonrpc.Trusted([]byte(`{"requiredCapabilities":{"` + capability + `":{}}}`))
		return &jsonrpc.Error{Code: jsonrpc.CodeMissingCapability, Message: "x", Data: data}
	}
	for _, tt := range []struct {
		err  error
		want string // a part of the hint; empty for none
	}{
		{errors.New("x"), ""},
		{&streamable.StatusError{Status: 200, ContentType: "text/html"}, "that is a web page"},
		{&streamable.StatusError{Status: 200, ContentType: "text/plain"}, ""},
		{&streamable.StatusError{Status: 404, ContentType: "text/html"}, "is the path right?"},
		{&streamable.StatusError{Status: 405}, "is the path right?"},
		{&streamable.StatusError{Status: 403}, "the server refuses this client"},
		{&streamable.AuthError{Status: 403}, "give a token"},
		{&streamable.StatusError{Status: 429, RetryAfter: 7 * time.Second}, "left alone for 7s"},
		{&streamable.StatusError{Status: 503}, ""},
		{(&mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent}).ToWire(), "did not get the call"},
		{(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted}).ToWire(), "may have executed the call"},
		{(&mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered}).ToWire(), ""},
		{http.ErrSchemeMismatch, "speaks http, not https"},
		{x509.UnknownAuthorityError{}, "SSL_CERT_FILE"},
		{needs("roots"), "--root DIR"},
		{needs("sampling"), "no model"},
		{needs("elicitation"), ""},
	} {
		got := cli.HintOf(fmt.Errorf("connecting: %w", tt.err))
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%v: the hint is %q, want %q", tt.err, got, tt.want)
		}
	}
}

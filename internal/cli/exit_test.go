package cli_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
		{&mcp.CallError{Kind: mcp.Unreachable}, cli.ExitUnreachable},
		{&mcp.CallError{Kind: mcp.ConnectionLost}, cli.ExitUnreachable},
		{&mcp.CallError{Kind: mcp.TimedOut}, cli.ExitTimedOut},
		{&mcp.CallError{Kind: mcp.LimitExceeded}, cli.ExitUnexpected},
		{session.ErrRevision, cli.ExitMismatch},
		{mcp.UnsupportedRevision("2099-01-01", nil), cli.ExitMismatch},
		{jsonrpc.Errorf(jsonrpc.CodeInternalError, "x"), cli.ExitUnexpected},
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

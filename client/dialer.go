package client

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A dialer makes connections to a target, and remembers how it was spoken to.
type dialer struct {
	// Set at construction.
	target Target
	opts   transport.DialOptions

	mu    sync.Mutex
	prior Verdict // believed until the server shows otherwise; guarded by mu
}

// dial connects once: in the era that is believed to be the server's, and from
// scratch if what it answers shows that it is not.
func (d *dialer) dial(ctx context.Context) (transport.Edge, error) {
	d.mu.Lock()
	prior := d.prior
	d.mu.Unlock()
	if prior == (Verdict{}) {
		return d.target.Dial(ctx, d.opts)
	}
	opts := d.opts
	if prior.Era != mcp.NoEra {
		opts.Era, opts.Revision = prior.Era, prior.Revision
	}
	edge, err := bound(d.target, prior.Binding).Dial(ctx, opts)
	if err == nil || isUnreachable(err) {
		return edge, err
	}
	d.forget()
	if ctx.Err() != nil || !showsEra(err) {
		return nil, err
	}
	return d.target.Dial(ctx, d.opts)
}

func isUnreachable(err error) bool {
	failed, ok := errors.AsType[*mcp.CallError](err)
	return ok && failed.Kind == mcp.Unreachable
}

// showsEra reports whether a failure to connect may mean that the server is of
// another era: it gave an answer, and that to the request itself.
func showsEra(err error) bool {
	if jsonrpc.FromPeer(err) || errors.Is(err, session.ErrRevision) {
		return true
	}
	failed, ok := errors.AsType[*mcp.CallError](err)
	if _, isAuth := errors.AsType[*streamable.AuthError](err); !ok || isAuth || failed.Kind != mcp.BadReply {
		return false
	}
	status, ok := errors.AsType[*streamable.StatusError](err)
	return !ok || !isBusy(status.Status)
}

// isBusy reports whether an HTTP status says nothing of the request but that it
// was the wrong moment.
func isBusy(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// bound returns target with a binding, if it is of a kind that has one and says
// nothing of it itself.
func bound(target Target, binding streamable.Binding) Target {
	t, ok := target.(*URLTarget)
	if !ok || t.Options.Binding != streamable.AnyBinding {
		return target
	}
	with := *t
	with.Options.Binding = binding
	return &with
}

// bindingOf returns the binding of a connection to a target.
func bindingOf(target Target, edge transport.Edge) streamable.Binding {
	if _, ok := target.(*URLTarget); !ok {
		return streamable.AnyBinding
	}
	if _, ok := edge.(*streamable.Conn); ok {
		return streamable.StreamableHTTP
	}
	return streamable.HTTPWithSSE
}

// learn remembers what a server has shown itself to be, and returns it. The next
// connection to a modern one asks it for its revision all the same, because an
// answer shows that it is there.
func (d *dialer) learn(edge transport.Edge) Verdict {
	server, binding := edge.Server(), bindingOf(d.target, edge)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prior = Verdict{Binding: binding}
	if d.opts.Era == mcp.NoEra {
		d.prior.Era = server.Era
	}
	return Verdict{Era: server.Era, Revision: server.Revision, Binding: binding}
}

func (d *dialer) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prior = Verdict{}
}

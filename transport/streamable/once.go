package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// CallOnce sends one request to the server at address and returns its result:
// without a session, without a handshake, and without looking for the server's
// era. Notifications that come before the result go to caller, which may be
// nil. If req.Meta.Revision is a modern one, its metadata and headers are sent.
func CallOnce(ctx context.Context, address string, req *mcp.Request, caller mcp.Caller, opts *DialOptions) (mcp.Result, error) {
	c, err := newConn(address, opts)
	if err != nil {
		return mcp.Result{}, err
	}
	defer c.close(goodbye)
	if caller == nil {
		caller = mcp.NoCaller{}
	}
	if req.Meta.Revision.Era() == mcp.Modern {
		c.era = newModernEra(c, req.Meta.Revision)
	} else {
		c.era = &bareEra{conn: c}
	}
	return c.era.Handle(ctx, req, caller)
}

// A bareEra sends single requests to a server of which nothing is known.
type bareEra struct {
	stateless

	conn *Conn
}

// Handle implements [mcp.Handler].
func (e *bareEra) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	call, err := e.conn.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	t := &trip{
		conn: e.conn, era: e, call: call, header: e.conn.newHeader(e),
		body: jsonrpc.AppendRequest(nil, call.WireID(), req.Method, &req.Params),
	}
	return t.run(ctx, caller)
}

func (e *bareEra) prepare(http.Header) {}

func (e *bareEra) notified(m *jsonrpc.Message, call *inflight.Call) {
	call.Notify(&mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body})
}

func (e *bareEra) asked(m *jsonrpc.Message, _ *inflight.Call) {
	e.conn.skip("the server asked something outside a session", errors.New(mcp.MethodName(m.Method)))
}

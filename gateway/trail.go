package gateway

import (
	"context"
	"maps"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A trail is where the requests of a client have gone, as far as lists do not say. It is
// guarded by Gateway.mu.
type trail struct {
	found map[string]*backend // by URI: of resources in no list, or that needed input
	asked map[string]uint64   // backends that have asked for input, by request: see askedKey
}

// maxTrail is how many of each are remembered for a client.
const maxTrail = 100

func newTrail() *trail {
	return &trail{found: make(map[string]*backend), asked: make(map[string]uint64)}
}

// remember sets a member of a trail, which forgets another one for that if need be.
func remember[T any](m map[string]T, key string, value T) {
	if _, there := m[key]; !there && len(m) >= maxTrail {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[key] = value
}

// forget forgets what was found at a backend that was removed. That it has asked for
// something is remembered: the answers are for nobody else.
func (t *trail) forget(b *backend) {
	maps.DeleteFunc(t.found, func(_ string, of *backend) bool { return of == b })
}

// askedKey is what a request and its retry have in common.
func askedKey(method, name string) string { return string(bounded([]byte(method + "\x00" + name))) }

// errOtherAsked refuses a retry whose input somebody else has asked for, or nobody knows
// who: the user's answers and the state are not for other servers to see.
func errOtherAsked() error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: it is not known who has asked for input; begin anew")
}

// exchange is deliver for requests that may need input; name is the member of params that
// says what they are for.
func (g *Gateway) exchange(ctx context.Context, b *backend, a attempt, name string, edits ...jsonrpc.Edit) (mcp.Result, error) {
	if isRetry(&a.req.Params) && !g.mayRetry(a.req, name, b) {
		return mcp.Result{}, errOtherAsked()
	}
	result, err := g.deliver(ctx, b, a.req, a.caller, edits...)
	if err == nil && result.Type() == mcp.InputRequired {
		v, key := g.viewOf(&a.req.Meta), askedKey(a.req.Method, name)
		g.mu.Lock()
		remember(v.trail.asked, key, b.id)
		g.mu.Unlock()
	}
	return result, err
}

// mayRetry reports whether a retry may go to a backend: nobody else is known to have asked.
func (g *Gateway) mayRetry(req *mcp.Request, name string, b *backend) bool {
	v, key := g.viewOf(&req.Meta), askedKey(req.Method, name)
	g.mu.RLock()
	defer g.mu.RUnlock()
	id, asked := v.trail.asked[key]
	return !asked || id == b.id
}

// isRetry reports whether a request answers what was asked within another one.
func isRetry(params *jsonrpc.Value) bool {
	_, state := params.Lookup("requestState")
	_, answers := params.Lookup("inputResponses")
	return state || answers
}

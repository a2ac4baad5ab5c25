package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Options configure a [Gateway]. The zero value is usable.
type Options struct {
	// Info is what the gateway calls itself. Default mcpsplice, version 0.
	Info mcp.Implementation
	// Instructions are told clients for their model. Default: those of the backends,
	// each under the name of its backend.
	Instructions string
	// MaxName is how long names of tools and prompts may be. Default DefaultMaxName,
	// at least MinMaxName, at most MaxMaxName.
	MaxName int
	// AlwaysPrefix has the names of a single backend begin with its name, too, so that
	// they stay the same when a second one is added.
	AlwaysPrefix bool
	// ListBudget is how long a list, or server/discover, waits for a backend of which
	// nothing is known. Default DefaultListBudget.
	ListBudget time.Duration
	// KeptBudget is how long it waits for a backend whose last answer is known, which
	// is used then, or which has been late before. Default DefaultKeptBudget.
	KeptBudget time.Duration
	// LateLimit is how long an answer to a list may take that nobody waits for any
	// more. It is taken up when it comes. Default DefaultLateLimit.
	LateLimit time.Duration
	// MaxViews is for how many clients lists are kept, and MaxKept how large these and
	// the instructions are together, in bytes, lists as they came and as they are shown;
	// beyond that those are forgotten that were not used for longest. Defaults DefaultMaxViews, DefaultMaxKept.
	MaxViews int
	MaxKept  int
	// MaxListens is how many calls of subscriptions/listen there may be, of which one
	// principal may not have all (MaxShare). Default DefaultMaxListens.
	MaxListens int
	Logger     *slog.Logger // nil for silence
}

// Defaults of [Options] and [BackendOptions].
const (
	DefaultListBudget = 2 * time.Second
	DefaultKeptBudget = 250 * time.Millisecond
	DefaultLateLimit  = time.Minute
	DefaultMaxViews   = 1000
	DefaultMaxKept    = 64 << 20
	DefaultMaxListens = 10_000
	DefaultMaxCalls   = 128
)

// Bounds of what can be added, of how many lists a backend is asked for at once, and of
// how many more wait for that, of which one principal may not have all (MaxShare).
const (
	MaxBackends        = 1000
	MaxBackendName     = 256 // bytes
	MaxListings        = 64
	MaxWaitingListings = 1000
)

// A Gateway is a Handler over many backends. It is safe for concurrent use.
type Gateway struct {
	// Set at construction.
	opts    Options
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	listens *shared        // calls
	running sync.WaitGroup // goroutines, and listen calls

	ticks atomic.Int64 // counts uses of views

	mu        sync.RWMutex
	closed    bool             // guarded by mu, like what follows
	backends  []*backend       // in the order of their names; replaced, never changed
	added     uint64           // backends ever
	views     map[string]*view // by key
	kept      int              // bytes of all views
	listeners map[*listener]struct{}
	conflicts map[Conflict]struct{}
}

var _ mcp.Handler = (*Gateway)(nil)

// New returns a gateway without backends. It must be closed.
func New(opts *Options) *Gateway {
	if opts == nil {
		opts = new(Options)
	}
	g := &Gateway{
		opts:  opts.withDefaults(),
		views: make(map[string]*view), listeners: make(map[*listener]struct{}), conflicts: make(map[Conflict]struct{}),
	}
	g.listens = newShared(g.opts.MaxListens)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

func (o *Options) withDefaults() Options {
	d := *o
	if d.Info.Name == "" {
		d.Info.Name = "mcpsplice"
	}
	if d.Info.Version == "" {
		d.Info.Version = "0"
	}
	d.MaxName = nameLimit(d.MaxName)
	d.ListBudget = orDefault(d.ListBudget, DefaultListBudget)
	d.KeptBudget = orDefault(d.KeptBudget, DefaultKeptBudget)
	d.LateLimit = orDefault(d.LateLimit, DefaultLateLimit)
	d.MaxViews = orDefault(d.MaxViews, DefaultMaxViews)
	d.MaxKept = orDefault(d.MaxKept, DefaultMaxKept)
	d.MaxListens = orDefault(d.MaxListens, DefaultMaxListens)
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

func orDefault[T int | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}

// Errors of [Gateway.Add].
var (
	ErrBackendName = errors.New("a backend cannot have this name")
	ErrBackendUsed = errors.New("there is a backend of this name")
)

var errNoHandler = errors.New("a backend is a handler")

// Add adds a backend, which begins to be used: names of its tools and prompts begin
// with name. Clients that listen are told that the lists have changed. The gateway does
// not close backends.
func (g *Gateway) Add(name string, handler mcp.Handler, opts *BackendOptions) error {
	if name == "" || len(name) > MaxBackendName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %d bytes, where 1 to %d of UTF-8 may be", ErrBackendName, len(name), MaxBackendName)
	}
	if handler == nil {
		return fmt.Errorf("adding backend %q: %w", name, errNoHandler)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i, used := slices.BinarySearchFunc(g.backends, name, byName)
	switch {
	case g.closed:
		return mcp.ErrClosed
	case used:
		return fmt.Errorf("adding backend %q: %w", name, ErrBackendUsed)
	case len(g.backends) >= MaxBackends:
		return fmt.Errorf("adding backend %q: there are %d, the limit MaxBackends", name, len(g.backends))
	}
	b := newBackend(g.ctx, name, handler, opts)
	g.added++
	b.id = g.added
	g.backends = slices.Insert(slices.Clone(g.backends), i, b)
	g.announceAll(allChanged)
	return nil
}

// Remove removes a backend and reports whether there was one of this name. Its features
// are gone at once; calls that it has been given go on.
func (g *Gateway) Remove(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, found := slices.BinarySearchFunc(g.backends, name, byName)
	if !found {
		return false
	}
	b := g.backends[i]
	g.backends = slices.Delete(slices.Clone(g.backends), i, i+1)
	b.cancel()
	g.forget(b)
	g.announceAll(allChanged)
	return true
}

func byName(b *backend, name string) int { return strings.Compare(b.name, name) }

// Close ends listen calls and fails later ones. It waits for the gateway's goroutines,
// which end as soon as the backends heed their contexts. Calls in flight go on, and
// backends stay open. It returns nil.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.running.Wait()
	return nil
}

// all returns the backends in the order of their names.
func (g *Gateway) all() []*backend {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.backends
}

// prefix returns what the names of a backend begin with; g.mu is held.
func (g *Gateway) prefix(b *backend) string { return g.prefixAmong(len(g.backends), b) }

// prefixAmong is prefix while there are n backends.
func (g *Gateway) prefixAmong(n int, b *backend) string {
	if n == 1 && !g.opts.AlwaysPrefix {
		return ""
	}
	return b.name
}

// Handle implements [mcp.Handler]. Methods that are not of clients, or that concern
// tasks, get CodeMethodNotFound. Errors of backends pass as they are; those of the
// gateway's own making are of type *mcp.CallError, or *jsonrpc.Error for what is
// unknown or malformed.
func (g *Gateway) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if g.ctx.Err() != nil {
		return mcp.Result{}, closed(req.Method)
	}
	if req.Notification {
		return mcp.Result{}, g.notified(ctx, req)
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return g.discover(ctx, req)
	case mcp.MethodListTools:
		return g.list(ctx, req, tools)
	case mcp.MethodListPrompts:
		return g.list(ctx, req, prompts)
	case mcp.MethodListResources:
		return g.list(ctx, req, resources)
	case mcp.MethodListResourceTemplates:
		return g.list(ctx, req, templates)
	case mcp.MethodCallTool:
		return g.call(ctx, req, caller, tools)
	case mcp.MethodGetPrompt:
		return g.call(ctx, req, caller, prompts)
	case mcp.MethodReadResource:
		return g.read(ctx, req, caller)
	case mcp.MethodComplete:
		return g.complete(ctx, req, caller)
	case mcp.MethodListen:
		return g.listen(ctx, req, caller)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %.100s", req.Method)
}

// closed is the failure of a request to a gateway, or a backend, that is there no more.
func closed(method string) error {
	return &mcp.CallError{Method: method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
}

// start counts a goroutine, or a listen call, that Close waits for, unless the gateway
// is closed.
func (g *Gateway) start() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Add(1)
	return true
}

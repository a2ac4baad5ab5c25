package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

// Options configure a [Server]. The zero value is usable.
type Options struct {
	// Instructions tell a model how to use the server.
	Instructions string
	// Capabilities are declared besides those that follow from what was added:
	// for features that come later, and for experimental capabilities and
	// extensions.
	Capabilities mcp.ServerCapabilitySet
	// PageSize is how many features one page of a list holds. Default
	// DefaultPageSize.
	PageSize int
	// ListTTL is how long clients may keep lists and what the server says of
	// itself; 0 stands for not at all. Lists are the same for everybody.
	ListTTL time.Duration
	// MaxListens is how many listen calls that ask for something are served at a
	// time. Default DefaultMaxListens.
	MaxListens int
	// Coalesce is how long changes are collected before clients are told of
	// them. Default DefaultCoalesce.
	Coalesce time.Duration
	// SkipValidation hands arguments to typed tools, and their results to
	// clients, without checking them against schemas. Arguments are still
	// decoded into the tool's type.
	SkipValidation bool
	// StateKey is the secret with which [NeedInput] seals state. Servers that
	// take each other's retries share one of at least 16 bytes. Nil stands for
	// a random one, with which state does not survive the process.
	StateKey []byte
	// StateLife is how long sealed state may come back. Default
	// DefaultStateLife.
	StateLife time.Duration
	Logger    *slog.Logger // nil for silence
}

// Defaults of [Options].
const (
	DefaultPageSize   = 1000
	DefaultMaxListens = 10_000
	DefaultCoalesce   = 10 * time.Millisecond
	DefaultStateLife  = 10 * time.Minute
)

// A Server is an MCP server made of functions, an [mcp.Handler]. Features can be
// added and removed while it serves. All its methods may be called concurrently.
// It has nothing to close: what it does ends with the calls that it serves.
type Server struct {
	// Set at construction.
	info   mcp.Implementation
	opts   Options
	meta   []byte // the _meta of results of modern requests
	prefix []byte // with which these begin
	sealer *park.Once

	tools     features[tool]
	resources features[resource]
	templates features[template]
	prompts   features[prompt]
	hub       hub
	headers   mcp.ToolHeaders

	changing    sync.Mutex // held while a tool and its headers come or go together
	mu          sync.RWMutex
	methods     map[string]MethodFunc          // guarded by mu
	completions map[completionKey]CompleteFunc // guarded by mu
	completed   bool                           // there has been a completion; guarded by mu
}

// A MethodFunc answers a request, or takes a notification, that this package does
// not know. The result of a notification is not used.
type MethodFunc func(ctx context.Context, call *Call) (mcp.Result, error)

// minStateKey is how many bytes a secret for states must have.
const minStateKey = 16

// New returns a server without features that calls itself info. It panics if the
// options hold a StateKey that is too short to be a secret.
func New(info mcp.Implementation, opts *Options) *Server {
	s := &Server{
		info: info, opts: opts.withDefaults(),
		methods:     make(map[string]MethodFunc),
		completions: make(map[completionKey]CompleteFunc),
	}
	s.meta = fmt.Appendf(nil, `{%q:%s}`, mcp.MetaServerInfo, info.JSON())
	s.prefix = fmt.Appendf(nil, `{"resultType":"complete","_meta":%s`, s.meta)
	if key := s.opts.StateKey; key != nil && len(key) < minStateKey {
		must("option", "StateKey", fmt.Errorf("%d bytes are fewer than %d", len(key), minStateKey))
	}
	s.sealer = park.NewSealer(s.opts.StateKey).Once(0)
	s.tools.init("tools", s.listsChanged(mcp.ToolsChanged))
	s.resources.init("resources", s.listsChanged(mcp.ResourcesChanged))
	s.templates.init("resourceTemplates", s.listsChanged(mcp.ResourcesChanged))
	s.prompts.init("prompts", s.listsChanged(mcp.PromptsChanged))
	s.hub.init(s.opts.MaxListens, s.opts.Coalesce)
	return s
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.PageSize <= 0 {
		d.PageSize = DefaultPageSize
	}
	if d.MaxListens <= 0 {
		d.MaxListens = DefaultMaxListens
	}
	if d.Coalesce <= 0 {
		d.Coalesce = DefaultCoalesce
	}
	d.ListTTL = max(d.ListTTL, 0)
	if d.StateLife <= 0 {
		d.StateLife = DefaultStateLife
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// must ends the program that defines something that is none.
func must(kind, name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("server: %s %q: %v", kind, name, err)) // invariant: a program's definitions are its own
	}
}

// Method has f answer requests, or take notifications, of a method: an extension
// of the protocol, or a method of the server's own. It panics for a method of a
// client that the protocol itself has. Nil removes the method.
func (s *Server) Method(method string, f MethodFunc) {
	if isOwn(method) {
		must("method", method, errors.New("it is the protocol's own"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.methods, method)
		return
	}
	s.methods[method] = f
}

func (s *Server) method(name string) MethodFunc {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.methods[name]
}

// discover says what the server is and has.
func (s *Server) discover(req *mcp.Request) (mcp.Result, error) {
	ttl := s.opts.ListTTL.Milliseconds()
	return encodeResult(mcp.DiscoverResult{
		SupportedVersions: append(mcp.ModernRevisions(), mcp.LegacyRevisions()...),
		Capabilities:      s.capabilities(),
		Instructions:      s.opts.Instructions,
		CacheHints:        mcp.CacheHints{TTLMs: &ttl, CacheScope: mcp.Public},
		ResultMembers: mcp.ResultMembers{
			ResultType: mcp.Complete,
			Meta:       mcp.Object{mcp.MetaServerInfo: s.info.JSON()},
		},
	})
}

// capabilities are what was declared and what follows from the features.
func (s *Server) capabilities() mcp.ServerCapabilitySet {
	c := s.opts.Capabilities
	if c.Tools == nil && s.tools.used() {
		c.Tools = &mcp.ListCapability{ListChanged: true}
	}
	if c.Prompts == nil && s.prompts.used() {
		c.Prompts = &mcp.ListCapability{ListChanged: true}
	}
	if c.Resources == nil && (s.resources.used() || s.templates.used()) {
		c.Resources = &mcp.ResourceCapability{ListChanged: true, Subscribe: true}
	}
	if c.Completions == nil && s.completes() {
		c.Completions = mcp.Object{}
	}
	if c.Logging == nil {
		c.Logging = mcp.Object{}
	}
	return c
}

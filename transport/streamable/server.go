package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// DefaultAddr is where a [Server] listens if nothing else is said.
const DefaultAddr = "127.0.0.1:8421"

// Defaults of [ServerOptions].
const (
	DefaultPath          = "/mcp"
	DefaultDrain         = 10 * time.Second
	DefaultHeaderTimeout = 10 * time.Second
	DefaultIdleTimeout   = 2 * time.Minute
)

// ServerOptions configure a [Server]. The zero value is usable.
type ServerOptions struct {
	HandlerOptions

	Path string // of the endpoint; default DefaultPath
	// NoSSE leaves out the endpoints of clients of revision 2024-11-05. Else
	// they are /sse and /message beside the endpoint, unless it is one of these
	// itself, serves Plain, or modern clients only. SSE.Prefix is for proxies
	// that show them to clients below another path.
	NoSSE bool
	// AllowRemote lets the server listen beyond loopback without
	// authentication. Whoever reaches it can then use it.
	AllowRemote bool
	// Drain is how long shutting down waits for requests in flight. Default
	// DefaultDrain.
	Drain time.Duration
	// HeaderTimeout is how long a client may take to send the head of a
	// request. Default DefaultHeaderTimeout.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a network connection without requests is kept.
	// Default DefaultIdleTimeout.
	IdleTimeout time.Duration
}

func (o *ServerOptions) withDefaults() ServerOptions {
	var d ServerOptions
	if o != nil {
		d = *o
	}
	d.HandlerOptions = d.HandlerOptions.withDefaults()
	if d.Path == "" {
		d.Path = DefaultPath
	}
	d.Path = "/" + strings.Trim(d.Path, "/")
	if d.Drain <= 0 {
		d.Drain = DefaultDrain
	}
	if d.HeaderTimeout <= 0 {
		d.HeaderTimeout = DefaultHeaderTimeout
	}
	if d.IdleTimeout <= 0 {
		d.IdleTimeout = DefaultIdleTimeout
	}
	return d
}

// ErrRemote says that a server will not listen beyond loopback without
// authentication.
var ErrRemote = errors.New("refusing to listen beyond loopback without authentication")

// A Server serves an [mcp.Handler] over HTTP: the endpoint (/mcp), the broadcast
// stream (/mcp/events), the state of health (/mcp/health), and for clients of
// revision 2024-11-05 an [SSEHandler] (/sse, /message). Its methods may be called
// concurrently.
type Server struct {
	// Set at construction.
	listener  net.Listener
	http      http.Server
	handler   *Handler
	sse       *SSEHandler
	broadcast *Broadcast
	opts      ServerOptions
	routes    map[string]route
	stop      context.CancelFunc // ends the contexts of requests

	conns sync.WaitGroup // network connections being served
}

// Listen binds addr ("host:port"; the port 0 stands for any free one) and
// returns a server that waits there for [Server.Serve]. An empty addr stands for
// [DefaultAddr].
func Listen(addr string, handler mcp.Handler, opts *ServerOptions) (*Server, error) {
	o := opts.withDefaults()
	if addr == "" {
		addr = DefaultAddr
	}
	if err := checkAddr(addr, &o); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: listener, opts: o,
		handler:   NewHandler(handler, &o.HandlerOptions),
		broadcast: newBroadcast(&o.HandlerOptions),
	}
	s.sse = newSSEHandler(s.handler, o.besideEndpoint())
	s.sse.serving.Drain = o.Drain
	s.routes = s.newRoutes()
	base, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.http = http.Server{
		Handler:                      http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout:            o.HeaderTimeout,
		IdleTimeout:                  o.IdleTimeout,
		MaxHeaderBytes:               64 << 10,
		DisableGeneralOptionsHandler: true, // it would stand before the guard
		BaseContext:                  func(net.Listener) context.Context { return base },
		ConnState:                    s.count,
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// checkAddr refuses addresses that others can reach, unless somebody said so.
func checkAddr(addr string, o *ServerOptions) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", addr, err)
	}
	if o.AllowRemote || o.Principal != nil || isLoopbackName(strings.ToLower(host)) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrRemote, addr)
}

// URL returns the address of the endpoint.
func (s *Server) URL() string { return s.origin() + s.opts.Path }

// SSEURL returns the address of the stream for clients of revision 2024-11-05,
// empty if there is none.
func (s *Server) SSEURL() string {
	if !s.hasSSE() {
		return ""
	}
	return s.origin() + s.ssePath()
}

func (s *Server) origin() string { return "http://" + s.listener.Addr().String() }

// hasSSE reports whether the endpoints of an [SSEHandler] are there.
func (s *Server) hasSSE() bool { return s.routes[s.ssePath()].methods != nil }

func (s *Server) ssePath() string { return s.opts.parent() + ssePath }

// Broadcast sends an event to everybody who watches /mcp/events. Data is JSON by
// custom. It does not wait for anybody.
func (s *Server) Broadcast(event string, data []byte) error { return s.broadcast.Send(event, data) }

// Serve serves until ctx is done, then shuts down: it takes no more requests,
// ends streams, waits for requests in flight no longer than the drain time, and
// ends those that are left. It returns nil after ctx and after [Server.Close].
func (s *Server) Serve(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	select {
	case err := <-ended:
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	s.handler.Drain()
	s.broadcast.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Drain)
	defer cancel()
	// What is in flight after the drain time ends with its connection.
	_ = s.http.Shutdown(drain)
	s.handler.settle(drain) // those without a client too
	err := s.Close()
	<-ended
	s.settle()
	return err
}

// settleTime bounds waiting for handlers after their contexts have ended.
const settleTime = time.Second

// settle waits for the connections' goroutines, of which there will be no more.
func (s *Server) settle() {
	settled := make(chan struct{})
	go func() {
		s.conns.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleTime):
		s.opts.Logger.Warn("handlers go on although their requests have ended")
	}
}

// count follows the network connections.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}

// Close ends the server at once, whether or not it serves.
func (s *Server) Close() error {
	s.stop()
	s.sse.Close() // and with it the handler
	s.broadcast.Close()
	err := s.http.Close()
	// http.Server closes only listeners that it has served.
	if lerr := s.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return err
}

// A route is what is served at one path, besides OPTIONS.
type route struct {
	methods []string // nil if serve decides
	serve   func(*output) *reject
}

// newRoutes returns all routes by their paths.
func (s *Server) newRoutes() map[string]route {
	base := strings.TrimSuffix(s.opts.Path, "/")
	endpoint := route{serve: s.handler.serve}
	routes := map[string]route{
		base:       endpoint,
		base + "/": endpoint,
		base + "/events": {
			methods: []string{http.MethodGet}, serve: s.broadcast.serve,
		},
		base + "/health": {
			methods: []string{http.MethodGet, http.MethodHead}, serve: serveHealth,
		},
	}
	parent := s.opts.parent()
	if s.opts.NoSSE || s.opts.Path == parent+ssePath || s.opts.Path == parent+messagePath {
		return routes
	}
	for name, route := range s.sse.routes {
		routes[parent+name] = route
	}
	return routes
}

// parent returns what comes before the last part of the endpoint's path.
func (o *ServerOptions) parent() string { return strings.TrimSuffix(path.Dir(o.Path), "/") }

// besideEndpoint returns the options of the endpoints beside the endpoint.
func (o *ServerOptions) besideEndpoint() SSEOptions {
	sse := o.SSE
	if sse.Prefix == "" {
		sse.Prefix = o.parent()
	}
	return sse
}

// serveHTTP serves all requests. No route stands before the guard.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	out := newOutput(w, r, &s.handler.opts)
	rej := s.handler.guard.check(w.Header(), r)
	if rej == nil {
		rej = s.serve(out)
	}
	if rej != nil {
		out.refuse(rej)
	}
}

func (s *Server) serve(out *output) *reject {
	route, ok := s.routes[out.r.URL.Path]
	if !ok {
		return s.notFound()
	}
	return route.dispatch(out)
}

// dispatch serves a request by its method.
func (rt *route) dispatch(out *output) *reject {
	if rt.methods == nil || slices.Contains(rt.methods, out.r.Method) {
		return rt.serve(out)
	}
	methods := strings.Join(append(slices.Clone(rt.methods), http.MethodOptions), ", ")
	if out.r.Method == http.MethodOptions {
		out.preflight(methods)
		return nil
	}
	rej := notAllowed(methods)
	rej.null = true
	return rej
}

func serveHealth(out *output) *reject {
	out.json(http.StatusOK, []byte(`{"status":"ok","transport":"streamable-http"}`))
	return nil
}

func (s *Server) notFound() *reject {
	base := strings.TrimSuffix(s.opts.Path, "/")
	there := []string{"POST " + s.opts.Path, "GET " + base + "/events", "GET " + base + "/health"}
	if s.hasSSE() {
		there = append(there, "GET "+s.ssePath())
	}
	last := len(there) - 1
	there[last] = "or " + there[last]
	rej := invalid(http.StatusNotFound, "Not found. Use %s", strings.Join(there, ", "))
	rej.null = true
	return rej
}

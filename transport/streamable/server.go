package streamable

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// DefaultAddr is where a [Server] listens if nothing else is said.
const DefaultAddr = "127.0.0.1:8421"

// DefaultPath is the path of the MCP endpoint.
const DefaultPath = "/mcp"

// DefaultDrain is how long a server that shuts down waits for requests in
// flight.
const DefaultDrain = 10 * time.Second

// ServerOptions configure a [Server]. The zero value is usable.
type ServerOptions struct {
	HandlerOptions

	Path string // of the endpoint; default DefaultPath
	// AllowRemote lets the server listen beyond loopback without
	// authentication. Whoever reaches it can then use it.
	AllowRemote bool
	// Drain is how long shutting down waits for requests in flight. Default
	// DefaultDrain.
	Drain time.Duration
}

// ErrRemote says that a server will not listen beyond loopback without
// authentication.
var ErrRemote = errors.New("refusing to listen beyond loopback without authentication")

// A Server serves an [mcp.Handler] over HTTP: the endpoint (/mcp), the broadcast
// stream (/mcp/events) and the state of health (/mcp/health).
type Server struct {
	listener  net.Listener
	http      http.Server
	handler   *Handler
	broadcast *Broadcast
	opts      ServerOptions
	stop      context.CancelFunc // ends the contexts of requests
}

// Listen binds addr ("host:port"; the port 0 stands for any free one) and
// returns a server that waits there for [Server.Serve]. An empty addr stands for
// [DefaultAddr].
func Listen(addr string, handler mcp.Handler, opts *ServerOptions) (*Server, error) {
	var o ServerOptions
	if opts != nil {
		o = *opts
	}
	if addr == "" {
		addr = DefaultAddr
	}
	if o.Path == "" {
		o.Path = DefaultPath
	}
	o.Path = "/" + strings.Trim(o.Path, "/")
	if o.Drain <= 0 {
		o.Drain = DefaultDrain
	}
	if err := checkAddr(addr, o); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: listener, opts: o,
		handler:   NewHandler(handler, &o.HandlerOptions),
		broadcast: NewBroadcast(),
	}
	base, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.http = http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	return s, nil
}

// checkAddr refuses addresses that others can reach, unless somebody said so.
func checkAddr(addr string, o ServerOptions) error {
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
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + s.opts.Path }

// Broadcast sends an event to everybody who watches /mcp/events. Data is JSON by
// custom. It does not wait for anybody.
func (s *Server) Broadcast(event string, data []byte) error { return s.broadcast.Send(event, data) }

// Serve serves until ctx is done, then shuts down: it takes no more requests,
// ends streams, waits for requests in flight no longer than the drain time, and
// ends those that are left. It returns nil after ctx.
func (s *Server) Serve(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	select {
	case err := <-ended:
		return errors.Join(err, s.close())
	case <-ctx.Done():
	}
	s.handler.Drain()
	s.broadcast.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Drain)
	defer cancel()
	// What is in flight after the drain time ends with its connection.
	_ = s.http.Shutdown(drain)
	err := s.close()
	<-ended
	return err
}

// Close ends the server at once, whether or not it serves.
func (s *Server) Close() error { return s.close() }

func (s *Server) close() error {
	s.stop()
	s.handler.Close()
	s.broadcast.Close()
	err := s.http.Close()
	// http.Server closes only listeners that it has served.
	if lerr := s.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return err
}

// routes returns the handler of all routes. Each stands behind the guard.
func (s *Server) routes() http.Handler {
	events, health := s.opts.Path+"/events", s.opts.Path+"/health"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; path {
		case s.opts.Path, s.opts.Path + "/":
			s.handler.ServeHTTP(w, r)
		case events:
			s.guarded(w, r, s.broadcast, http.MethodGet)
		case health:
			s.guarded(w, r, http.HandlerFunc(serveHealth), "GET, HEAD")
		default:
			s.guarded(w, r, http.HandlerFunc(s.notFound), r.Method)
		}
	})
}

// guarded serves a route that is not the endpoint.
func (s *Server) guarded(w http.ResponseWriter, r *http.Request, next http.Handler, methods string) {
	if rej := s.handler.guard.check(w, r); rej != nil {
		rej.null = true
		rej.write(w)
		return
	}
	switch {
	case r.Method == http.MethodOptions:
		preflight(w, r, methods+", OPTIONS")
	case !strings.Contains(methods, r.Method):
		(&reject{
			status: http.StatusMethodNotAllowed, allow: methods + ", OPTIONS", null: true,
			err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Method Not Allowed: use %s", methods),
		}).write(w)
	default:
		next.ServeHTTP(w, r)
	}
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok","transport":"streamable-http"}`))
}

func (s *Server) notFound(w http.ResponseWriter, _ *http.Request) {
	p := s.opts.Path
	(&reject{
		status: http.StatusNotFound, null: true,
		err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Not found. Use POST %s, GET %s/events, or GET %s/health", p, p, p),
	}).write(w)
}

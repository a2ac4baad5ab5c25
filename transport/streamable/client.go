package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// DialOptions configure [Dial]. The zero value is usable.
type DialOptions struct {
	transport.DialOptions

	// Header is sent with every request to the server's origin, and to no
	// other. Headers of the protocol itself cannot be set.
	Header http.Header
	// MaxBody is how many bytes a reply, or one event of it, may have.
	// Default jsonrpc.DefaultMaxLineDialing.
	MaxBody int
	// ConnectTimeout bounds making a network connection. Default
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Transport makes the HTTP requests. Default: a transport of the
	// connection's own, closed with it.
	Transport http.RoundTripper
	Tap       transport.Tap // nil for none
}

// DefaultConnectTimeout bounds making a network connection.
const DefaultConnectTimeout = 10 * time.Second

// A Conn is a connection to an HTTP server: a dialing edge. Being connected
// means that the server can be used, not that a stream is open.
type Conn struct {
	// Set at construction.
	url   string
	opts  DialOptions
	http  http.Client
	calls inflight.Calls
	log   *slog.Logger

	headers mcp.ToolHeaders

	// Set by Dial before it returns.
	era  httpEra
	info transport.ServerInfo

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	err     error // guarded by mu
	closing bool  // nothing may be started any more, guarded by mu
	done    chan struct{}
}

// An httpEra is how a Conn speaks to a server of one era.
type httpEra interface {
	mcp.Handler
	// prepare sets the headers of a POST.
	prepare(header http.Header)
	// notified and asked take what comes on the stream of call.
	notified(m *jsonrpc.Message, call *inflight.Call)
	asked(ctx context.Context, m *jsonrpc.Message, call *inflight.Call)
	// cancel tells the server that call is no longer wanted, if closing its
	// stream does not.
	cancel(ctx context.Context, call *inflight.Call)
	// lost takes note that the server does not know the session any more, and
	// reports whether there was one.
	lost() bool
	// resume says how to go on with the stream of a POST that has broken; an
	// empty session means not at all.
	resumable() bool
	// end says goodbye.
	end(ctx context.Context)
}

// Dial connects to the server at an http or https URL: it finds out its era,
// unless that is given, and makes a legacy server's handshake. Ctx ends the
// dialing, not the connection.
func Dial(ctx context.Context, address string, opts *DialOptions) (*Conn, error) {
	c, err := newConn(address, opts)
	if err != nil {
		return nil, err
	}
	if err := c.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to %s: %w", redacted(address), err), c.Close())
	}
	return c, nil
}

func newConn(address string, opts *DialOptions) (*Conn, error) {
	var o DialOptions
	if opts != nil {
		o = *opts
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q is no http or https URL", redacted(address))
	}
	if o.Client == nil {
		o.Client = []byte(`{"name":"mcpsplice","version":"0"}`)
	}
	if o.Capabilities == nil {
		o.Capabilities = []byte("{}")
	}
	if o.MaxCall <= 0 {
		o.MaxCall = transport.DefaultMaxCall
	}
	if o.MaxBody <= 0 {
		o.MaxBody = jsonrpc.DefaultMaxLineDialing
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Conn{url: address, opts: o, log: o.Logger, done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.http = http.Client{Transport: o.Transport, CheckRedirect: checkRedirect}
	if o.Transport == nil {
		c.http.Transport = newTransport(o.ConnectTimeout)
	}
	return c, nil
}

func newTransport(connect time.Duration) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}).DialContext
	t.MaxIdleConnsPerHost = 64
	t.TLSHandshakeTimeout = connect
	return t
}

// redacted returns an address without what may be a secret in it.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the given address"
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}

// connect finds out the server's era and readies it.
func (c *Conn) connect(ctx context.Context) error {
	switch c.opts.Era {
	case mcp.Legacy:
		return c.beLegacy(ctx)
	case mcp.Modern:
		result, err := c.discover(ctx, mcp.NewestModern)
		if err != nil {
			return err
		}
		return c.beModern(result)
	}
	result, err := c.discover(ctx, mcp.NewestModern)
	era, supported := judge(result, err)
	switch {
	case era == mcp.NoEra:
		return err
	case era == mcp.Legacy:
		if lerr := c.beLegacy(ctx); lerr != nil {
			return errors.Join(lerr, notLegacyEither(err))
		}
		return nil
	case err == nil:
		return c.beModern(result)
	}
	revision, ok := mcp.PickModern(supported)
	if !ok {
		return fmt.Errorf("%w: the server supports %v", session.ErrRevision, supported)
	}
	if result, err = c.discover(ctx, revision); err != nil {
		return err
	}
	return c.beModern(result)
}

// notLegacyEither keeps the first answer when neither era could be spoken.
func notLegacyEither(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("before that, server/discover: %w", err)
}

// judge is transport.Judge, where an HTTP status is an answer as well
// (2026-07-28, streamable-http, Backward Compatibility).
func judge(result mcp.Result, err error) (mcp.Era, []mcp.Revision) {
	era, supported := transport.Judge(result, err)
	if era != mcp.NoEra {
		return era, supported
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		switch e.Status {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
			http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusOK:
			return mcp.Legacy, nil
		}
	}
	return mcp.NoEra, nil
}

// discover asks the server about itself as a modern client.
func (c *Conn) discover(ctx context.Context, revision mcp.Revision) (mcp.Result, error) {
	probe := &modernEra{conn: c, revision: revision}
	return probe.Handle(ctx, &mcp.Request{
		Method: mcp.MethodDiscover,
		Meta:   mcp.Metadata{Client: c.opts.Client, Capabilities: c.opts.Capabilities},
	}, mcp.NoCaller{})
}

func (c *Conn) beModern(discover mcp.Result) error {
	supported := mcp.SupportedVersions(&discover)
	revision, ok := mcp.PickModern(supported)
	if !ok {
		return fmt.Errorf("%w: the server supports %v", session.ErrRevision, supported)
	}
	c.era = &modernEra{conn: c, revision: revision}
	c.info = transport.ServerInfo{Era: mcp.Modern, Revision: revision, Discover: discover}
	return nil
}

func (c *Conn) beLegacy(ctx context.Context) error {
	e := newLegacyEra(c)
	if err := e.client.Initialize(ctx); err != nil {
		return err
	}
	discover, err := e.client.Handle(ctx, &mcp.Request{Method: mcp.MethodDiscover}, mcp.NoCaller{})
	if err != nil {
		return err
	}
	c.era = e
	c.info = transport.ServerInfo{Era: mcp.Legacy, Revision: e.client.Revision(), Discover: discover}
	c.start(func() { e.listen(c.ctx) })
	return nil
}

// Handle implements [mcp.Handler].
func (c *Conn) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	result, err := c.era.Handle(ctx, req, caller)
	if err == nil && req.Method == mcp.MethodListTools {
		result = c.learn(result)
	}
	return result, err
}

// learn takes up header annotations and leaves out tools with invalid ones.
func (c *Conn) learn(list mcp.Result) mcp.Result {
	list, bad := c.headers.Learn(list)
	for name, err := range bad {
		c.log.Warn("a tool is left out of the list", "name", name, "err", err)
	}
	return list
}

// Server implements [transport.Edge].
func (c *Conn) Server() transport.ServerInfo { return c.info }

// Done implements [transport.Edge].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [transport.Edge].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// goodbye bounds ending a session at its server.
const goodbye = 2 * time.Second

// Close implements [transport.Edge]: calls in flight end, a legacy session is
// ended at its server.
func (c *Conn) Close() error {
	if c.end(mcp.ErrClosed) && c.era != nil {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		c.era.end(ctx)
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.running.Wait()
	if t, ok := c.http.Transport.(*http.Transport); ok && c.opts.Transport == nil {
		t.CloseIdleConnections()
	}
	return nil
}

// start runs f in a goroutine that Close waits for, unless Close has been
// called.
func (c *Conn) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.running.Go(f)
	return true
}

// mark makes it known that the connection has ended, and reports whether it was
// not known before.
func (c *Conn) mark(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.err = err
	close(c.done)
	return true
}

// end ends the connection and fails what is in flight. It reports whether it had
// not ended before.
func (c *Conn) end(err error) bool {
	first := c.mark(err)
	c.calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: err}, true)
	c.cancel()
	return first
}

// ErrSessionLost says that the server does not know a legacy session any more.
var ErrSessionLost = errors.New("the server does not know the session any more")

// checkRedirect follows nothing that would change a method, lose a body, or
// carry either to another origin.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch status := req.Response.StatusCode; {
	case len(via) >= 10:
		return errors.New("more than 10 redirects")
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return fmt.Errorf("the server redirects to another origin, %s; use that address if it is to be trusted", redacted(req.URL.String()))
	case first.Method != http.MethodGet && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect:
		return fmt.Errorf("the server redirects a POST with status %d to %s; use that address", status, redacted(req.URL.String()))
	}
	return nil
}

// CallOnce sends one request to the server at address and returns its result:
// without a session, without a handshake, and without looking for the server's
// era. Notifications that come before the result go to caller, which may be
// nil. If req.Meta.Revision is a modern one, its metadata and headers are sent.
func CallOnce(ctx context.Context, address string, req *mcp.Request, caller mcp.Caller, opts *DialOptions) (mcp.Result, error) {
	c, err := newConn(address, opts)
	if err != nil {
		return mcp.Result{}, err
	}
	if caller == nil {
		caller = mcp.NoCaller{}
	}
	if req.Meta.Revision.Era() == mcp.Modern {
		c.era = &modernEra{conn: c, revision: req.Meta.Revision}
	} else {
		c.era = &bareEra{conn: c}
	}
	result, err := c.era.Handle(ctx, req, caller)
	return result, errors.Join(err, c.Close())
}

// readLimited reads at most limit bytes of a reply.
func readLimited(r io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(data) > limit {
		return nil, &mcp.CallError{
			Kind: mcp.LimitExceeded, Limit: "MaxBody", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the reply is longer than %d bytes", limit),
		}
	}
	return data, err
}

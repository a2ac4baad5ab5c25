package cells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A Bridge serves one backend to clients of every kind. It must be closed.
type Bridge struct {
	pool    *transport.Pool
	http    *streamable.Server
	waiting park.Options
	host    string // that clients over HTTP connect to
	ctx     context.Context
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	problems []error // of serving, guarded by mu
}

// NewBridge returns a bridge that serves. Of the options of pool and listener those
// that are zero have their defaults.
func NewBridge(b *Backend, pool transport.PoolOptions, listener streamable.ServerOptions) (*Bridge, error) {
	br := &Bridge{pool: transport.NewPool(b.Dial, pool), waiting: listener.Park}
	var err error
	listener.Retry = cmp.Or(listener.Retry, retry)
	if br.http, err = streamable.Listen("127.0.0.1:0", br.pool, &listener); err != nil {
		return nil, errors.Join(err, br.pool.Close())
	}
	br.host = hostOf(br.http.URL())
	br.ctx, br.cancel = context.WithCancel(context.Background())
	br.serve(func() error { return br.http.Serve(br.ctx) })
	return br, nil
}

// hostOf returns the host and port of a URL.
func hostOf(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return host
}

// Host returns where it listens for clients over HTTP.
func (b *Bridge) Host() string { return hostOf(b.http.URL()) }

// Through has clients over HTTP connect to another host from now on, that of a proxy
// before the bridge.
func (b *Bridge) Through(host string) { b.host = host }

func (b *Bridge) serve(f func() error) {
	b.serving.Go(func() {
		if err := f(); err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.problems = append(b.problems, err)
		}
	})
}

// Close drains the bridge, as SIGTERM has a program do, and waits until it and the
// servers that it has started are gone.
func (b *Bridge) Close() error {
	b.cancel()
	b.serving.Wait()
	err := b.pool.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(append(b.problems, err)...)
}

// Connect connects a client of a kind, which calls itself by a name. Over HTTP its
// requests have it in the header X-User.
func (b *Bridge) Connect(ctx context.Context, side Side, name string) (*Client, error) {
	info := fmt.Appendf(nil, `{"name":%q,"version":"1"}`, name)
	opts := transport.DialOptions{Era: side.Era, Client: info, Capabilities: capabilities}
	edge, err := b.dial(ctx, side.Wire, &streamable.DialOptions{DialOptions: opts, Header: http.Header{"X-User": {name}}})
	if err != nil {
		return nil, err
	}
	return &Client{edge: edge, side: side, info: info}, nil
}

var capabilities = []byte(`{"elicitation":{}}`)

func (b *Bridge) dial(ctx context.Context, wire Wire, opts *streamable.DialOptions) (transport.Edge, error) {
	switch wire {
	case HTTP:
		return edge(streamable.Dial(ctx, "http://"+b.host+"/mcp", opts))
	case SSE:
		opts.Binding = streamable.HTTPWithSSE
		return streamable.DialAny(ctx, "http://"+b.host+"/sse", opts)
	}
	client, server, err := linkPair()
	if err != nil {
		return nil, err
	}
	b.serve(func() error {
		return transport.Serve(b.ctx, server, b.pool, transport.ServeOptions{Park: b.waiting, Drain: 1})
	})
	return edge(transport.Dial(ctx, client, opts.DialOptions))
}

// edge keeps a nil pointer from becoming an Edge that is not nil.
func edge[E transport.Edge](e E, err error) (transport.Edge, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

// linkPair returns two ends of a byte stream.
func linkPair() (client, server transport.Link, err error) {
	r1, w1, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, r1.Close(), w1.Close())
	}
	link := func(r, w *os.File) transport.Link {
		return transport.NewLineLink(r, w, func() error { return errors.Join(r.Close(), w.Close()) }, transport.LineOptions{})
	}
	return link(r1, w2), link(r2, w1), nil
}

// A Client is connected to a bridge.
type Client struct {
	edge transport.Edge
	side Side
	info []byte
}

// Close disconnects it, in the way of its kind.
func (c *Client) Close() error { return c.edge.Close() }

// meta is that of its requests.
func (c *Client) meta() mcp.Metadata {
	return mcp.Metadata{Client: c.info, Capabilities: capabilities}
}

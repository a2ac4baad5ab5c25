package streamable

import (
	"context"
	"crypto/tls"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// Paths returns the paths of all routes.
func (s *Server) Paths() []string { return slices.Sorted(maps.Keys(s.routes)) }

// Sessions returns how many legacy sessions there are.
func (h *Handler) Sessions() int { return h.sessions.Len() }

// Streams returns how many sessions have a GET stream.
func (h *Handler) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, d := range h.deliveries {
		if d.own != nil {
			n++
		}
	}
	return n
}

// InFlight returns how many messages are being served.
func (h *Handler) InFlight() int { return int(h.inFlight.Load()) }

// LimitWatchers sets how many clients may watch.
func (b *Broadcast) LimitWatchers(n int) { b.maxWatchers = n }

// LastID returns the id of the newest event.
func (b *Broadcast) LastID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.run + "-" + strconv.FormatInt(b.next-1, 10)
}

// Streams returns how many clients there are.
func (h *SSEHandler) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams)
}

// InFlight returns how many messages are being served.
func (h *SSEHandler) InFlight() int { return h.core.InFlight() }

// Unsent returns how many bytes wait for clients to read.
func (h *SSEHandler) Unsent() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.streams {
		l.mu.Lock()
		n += len(l.queue)
		l.mu.Unlock()
	}
	return n
}

// MaxPosting is how many requests to a server of HTTP with SSE can be posted at a
// time.
const MaxPosting = maxPosting

// NewTransport returns what makes network connections, unless DialOptions name
// something else.
func NewTransport(connect time.Duration) *http.Transport { return newTransport(connect) }

// Shorten returns what makes requests to the origin of an address, and otherwise is as
// rest.
func Shorten(rest *http.Transport, address string) http.RoundTripper {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return shorten(rest, u)
}

// Limits of a shortcut.
const (
	MaxShortBody  = maxShortBody
	WritePatience = writePatience
)

// OutcomeOf returns what is known of a request after the error of its transport.
func OutcomeOf(ctx context.Context, err error) mcp.Outcome {
	s := site{origin: origin{secrets: newSecrets(nil)}}
	return mcp.OutcomeOf(s.notAnswered(ctx, err))
}

// ReadOn has a call end while its caller reads the reply, for as long as that takes, and
// returns whether the caller may have the rest of it read, and whether it was hung up on.
func ReadOn(read time.Duration) (goesOn, hungUp bool) {
	h, cut := &handover{reading: true}, make(chan struct{})
	h.end(func() { close(cut) })
	<-time.After(read)
	goesOn = h.settle()
	select {
	case <-cut:
		hungUp = true
	case <-time.After(time.Minute):
	}
	return goesOn, hungUp
}

// Discreetly returns what is asked for the proxy of a request in place of the environment.
func Discreetly(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return discreetly(proxy)
}

// DialTrusting is Dial with another configuration of TLS.
func DialTrusting(ctx context.Context, address string, config *tls.Config, opts *DialOptions) (*Conn, error) {
	c, err := newConn(address, opts)
	if err != nil {
		return nil, err
	}
	c.http.Transport.(*http.Transport).TLSClientConfig = config
	if err := c.connect(ctx); err != nil {
		c.close(curtGoodbye)
		return nil, err
	}
	return c, nil
}

// Held returns how many bytes are held for clients to read, with those that are being
// written.
func (h *SSEHandler) Held() int {
	h.unsent.mu.Lock()
	defer h.unsent.mu.Unlock()
	return h.unsent.bytes
}

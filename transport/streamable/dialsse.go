package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// DialSSE connects to a server of HTTP with SSE, the transport of revision
// 2024-11-05 (basic/transports, HTTP with SSE): GET of the http or https URL
// opens a stream, whose first event says where messages are to be posted, which
// must be at the origin of the stream. All legacy revisions are negotiated. Ctx
// ends the dialing, not the connection.
//
// The connection lives as long as its stream; nothing can be resumed. A call
// whose POST is not answered with a 2xx status fails alone, with a [*StatusError]
// or [*AuthError]; after 404 and 410 the connection ends with [ErrSessionLost].
func DialSSE(ctx context.Context, address string, opts *DialOptions) (*transport.Conn, error) {
	s, err := newSite(address, opts)
	if err != nil {
		return nil, err
	}
	if s.opts.Era == mcp.Modern {
		return nil, fmt.Errorf("connecting to %s: HTTP with SSE has legacy revisions only", redacted(address))
	}
	s.opts.Era = mcp.Legacy
	ctx, cancel := context.WithTimeout(ctx, s.opts.HandshakeTimeout)
	defer cancel()
	c, err := s.dialSSE(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s by HTTP with SSE: %w", redacted(address), err)
	}
	return c, nil
}

func (s *site) dialSSE(ctx context.Context) (*transport.Conn, error) {
	l := newDialedSSE(s)
	if err := l.open(ctx); err != nil {
		_ = l.Close() // never fails
		return nil, err
	}
	c, err := transport.Dial(ctx, l, s.opts.DialOptions)
	if err != nil {
		return nil, err
	}
	l.opening.Store(false)
	return c, nil
}

// open opens the stream and waits for the endpoint. Ctx ends the stream until
// that has come.
func (l *dialedSSE) open(ctx context.Context) error {
	unhook := context.AfterFunc(ctx, func() { l.cancel(context.Cause(ctx)) })
	defer unhook()
	header := l.site.origin.header.Clone()
	header["Accept"] = streamType
	resp, err := l.site.send(l.ctx, http.MethodGet, nil, header)
	if err != nil {
		return err
	}
	if !isEventStream(resp) {
		defer discard(resp.Body)
		return l.site.statusOnly(resp)
	}
	l.body, l.events = resp.Body, sse.NewReader(resp.Body, l.site.opts.MaxBody)
	text, err := l.awaitEndpoint()
	if err != nil {
		return err
	}
	endpoint, err := resolveEndpoint(resp.Request.URL, text)
	if err != nil {
		return &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err, Public: "the server's endpoint is not usable"}
	}
	l.endpoint = endpoint.String()
	l.site.origin.secrets.add(secretsOf(endpoint, nil)...)
	l.site.origin.secrets.add(idsIn(endpoint)...)
	return nil
}

// shortID is how long a part of an endpoint's path must be to be taken for the id of a
// session, which the others are words beside.
const shortID = 20

// idsIn returns what of an endpoint's path may be the id of a session.
func idsIn(endpoint *url.URL) []string {
	parts := strings.Split(endpoint.EscapedPath(), "/")
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < shortID })
}

// endpointEvent is the name of the event that says where to post.
const endpointEvent = "endpoint"

var errNoEndpoint = errors.New("the event stream does not begin with the event endpoint")

// awaitEndpoint returns what the endpoint event says. A message before it shows
// that the stream is of another kind.
func (l *dialedSSE) awaitEndpoint() (string, error) {
	for {
		e, err := l.events.Next()
		switch {
		case err != nil:
			return "", l.noEndpoint(err)
		case e.Name == endpointEvent:
			return string(e.Data), nil
		case e.Name == "" && len(e.Data) > 0:
			return "", &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: errNoEndpoint}
		}
	}
}

// noEndpoint returns the error of a stream that could not be read as far as its
// endpoint.
func (l *dialedSSE) noEndpoint(err error) error {
	if l.ctx.Err() != nil {
		return fmt.Errorf("waiting for the event endpoint: %w", context.Cause(l.ctx))
	}
	e := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: fmt.Errorf("%w: %w", errNoEndpoint, l.site.origin.brief(err))}
	if isOverLimit(err) {
		e.Kind, e.Limit = mcp.LimitExceeded, "MaxBody"
	}
	return e
}

// maxEndpoint is how long the URI of an endpoint may be: it is part of every
// POST.
const maxEndpoint = 8 << 10

// resolveEndpoint returns where to post, given the URL of the stream and the URI
// that came on it (RFC 3986, section 5). What is posted, and the headers that go
// with it, are for the origin of the stream only. Errors do not repeat the URI,
// which often holds the id of a session.
func resolveEndpoint(stream *url.URL, text string) (*url.URL, error) {
	if len(text) > maxEndpoint {
		return nil, fmt.Errorf("the endpoint of %d bytes is over the limit of %d", len(text), maxEndpoint)
	}
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return nil, errors.New("the endpoint is no URI")
	}
	endpoint := stream.ResolveReference(u)
	if !sameOrigin(endpoint, stream) {
		return nil, fmt.Errorf("the endpoint is at another origin, %s, than the stream, %s", originOf(endpoint), originOf(stream))
	}
	endpoint.User, endpoint.Fragment, endpoint.RawFragment = stream.User, "", ""
	return endpoint, nil
}

// originOf returns the origin of a URL, for people.
func originOf(u *url.URL) string { return fmt.Sprintf("%.200s", u.Scheme+"://"+u.Host) }

package streamable

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A site is a server as HTTP sees it: where it is, and how requests are made
// there.
type site struct {
	opts   DialOptions
	origin origin
	http   http.Client
}

func newSite(address string, opts *DialOptions) (site, error) {
	o := opts.withDefaults()
	origin, err := newOrigin(address, o.Header)
	if err != nil {
		return site{}, err
	}
	s := site{opts: o, origin: origin, http: http.Client{Transport: o.Transport, CheckRedirect: checkRedirect}}
	if o.Transport == nil {
		s.http.Transport = newTransport(o.ConnectTimeout)
	}
	return s, nil
}

// leave closes network connections that are not in use, if they are the site's
// own.
func (s *site) leave() {
	if t, ok := s.http.Transport.(*http.Transport); ok && s.opts.Transport == nil {
		t.CloseIdleConnections()
	}
}

// send makes one HTTP request to the address of the server. The error says
// whether it may have reached it.
func (s *site) send(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
	return s.sendTo(ctx, method, s.origin.url, body, header)
}

// sendTo is send to another address of the same origin.
func (s *site) sendTo(ctx context.Context, method, address string, body []byte, header http.Header) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: unaddressed(err)}
	}
	req.Header = header
	if s.opts.Tap != nil && body != nil {
		s.opts.Tap(true, body)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, notAnswered(ctx, unaddressed(err))
	}
	return resp, nil
}

// badStatus returns what a reply without a message says.
func (s *site) badStatus(resp *http.Response, data []byte) error {
	e := &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "the server answered with HTTP status " + resp.Status}
	if wantsAuthorization(resp) {
		e.Err = &AuthError{Status: resp.StatusCode, Challenges: resp.Header.Values("Www-Authenticate")}
		return e
	}
	if isSuccess(resp.StatusCode) {
		e.Public = "the server sent no response"
	}
	e.Err = s.statusError(resp, data)
	return e
}

func (s *site) statusError(resp *http.Response, data []byte) *StatusError {
	return &StatusError{
		Status: resp.StatusCode, ContentType: mediaType(resp), Excerpt: s.origin.excerpt(data),
		RetryAfter: retryAfter(resp),
	}
}

// statusOnly returns what the status of a reply says whose body nobody needs.
func (s *site) statusOnly(resp *http.Response) error {
	return s.badStatus(resp, excerptOf(resp))
}

// excerptOf returns the body of a reply that is no result, nothing if it is long.
func excerptOf(resp *http.Response) []byte {
	data, err := readLimited(resp.Body, drainBytes)
	if err != nil {
		return nil
	}
	return data
}

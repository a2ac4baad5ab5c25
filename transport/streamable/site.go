package streamable

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

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
		s.http.Transport = shorten(newTransport(o.ConnectTimeout), origin.blank.URL)
	}
	return s, nil
}

// leave closes network connections that are not in use, if they are the site's
// own.
func (s *site) leave() {
	if s.opts.Transport == nil {
		s.http.CloseIdleConnections()
	}
}

// send makes one HTTP request to the address of the server. The error says
// whether it may have reached it.
func (s *site) send(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
	req := s.origin.blank.WithContext(ctx) // cheaper than a new one
	req.Method = method
	if body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	return s.do(req, body, header)
}

// sendTo is send to another address of the same origin.
func (s *site) sendTo(ctx context.Context, method, address string, body []byte, header http.Header) (*http.Response, error) {
	req, err := newHTTPRequest(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	return s.do(req, body, header)
}

func newHTTPRequest(ctx context.Context, method, address string, body []byte) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body) // with any other reader, net/http writes the headers apart
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: unaddressed(err)}
	}
	return req, nil
}

// do makes a request.
func (s *site) do(req *http.Request, body []byte, header http.Header) (*http.Response, error) {
	req.Header = header
	if s.opts.Tap != nil && body != nil {
		s.opts.Tap(true, body)
	}
	return s.complete(req)
}

// complete makes a request, or goes on with one that was handed over.
func (s *site) complete(req *http.Request) (*http.Response, error) {
	connected := func() bool { return true }
	if s.opts.Transport == nil && req.URL.Scheme == "https" {
		req, connected = traced(req)
	}
	resp, err := s.roundTrip(req)
	switch {
	case errors.Is(err, errHandedOver):
		return nil, errHandedOver
	case err != nil && !connected():
		return nil, s.notAnswered(req.Context(), &unsentError{unaddressed(err)})
	case err != nil:
		return nil, s.notAnswered(req.Context(), unaddressed(err))
	}
	fillIn(resp, req)
	return resp, nil
}

// traced returns a request to net/http that tells whether it got as far as a connection:
// the errors of handshakes look like those of requests.
func traced(req *http.Request) (_ *http.Request, connected func() bool) {
	var got atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace)), got.Load
}

// roundTrip makes a request, as an [http.Client] does, which would copy what only
// redirects need.
func (s *site) roundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.User != nil {
		return s.http.Do(req)
	}
	resp, err := s.http.Transport.RoundTrip(req)
	switch {
	case answeredWithoutTLS(err):
		return nil, http.ErrSchemeMismatch
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, errNoReply
	case resp.StatusCode < 300 || resp.StatusCode >= 400:
		return resp, nil
	}
	follow := s.http
	follow.Transport = &replay{first: resp, next: s.http.Transport}
	return follow.Do(req)
}

var errNoReply = errors.New("the transport has returned no reply")

// fillIn adds to the reply to a request what not every transport of others does.
func fillIn(resp *http.Response, req *http.Request) {
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if resp.Request == nil {
		resp.Request = req
	}
}

// answeredWithoutTLS reports whether an error is that of a server which speaks HTTP
// where TLS is due.
func answeredWithoutTLS(err error) bool {
	record, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok && string(record.RecordHeader[:]) == "HTTP/"
}

// A replay is an [http.RoundTripper] that has the reply to its first request.
type replay struct {
	first *http.Response
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (r *replay) RoundTrip(req *http.Request) (*http.Response, error) {
	if first := r.first; first != nil {
		r.first = nil
		return first, nil
	}
	return r.next.RoundTrip(req)
}

// badStatus returns what a reply without a message says.
func (s *site) badStatus(resp *http.Response, data []byte) error {
	e := &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "the server answered with HTTP status " + s.origin.excerpt([]byte(resp.Status))}
	if wantsAuthorization(resp) {
		e.Err = &AuthError{Status: resp.StatusCode, Challenges: s.origin.withoutSecrets(resp.Header.Values("Www-Authenticate"))}
		return e
	}
	e.Outcome = outcomeOf(resp.StatusCode)
	if isSuccess(resp.StatusCode) {
		e.Public = "the server sent no response"
	}
	e.Err = s.statusError(resp, data)
	return e
}

// outcomeOf returns what a status says of a request to which no response came with it.
func outcomeOf(status int) mcp.Outcome {
	switch {
	case status == http.StatusAccepted:
		// It is for what has no response (2025-11-25, transports, Sending Messages),
		// and the work may go on (RFC 9110, section 15.3.3).
		return mcp.MaybeExecuted
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable:
		return mcp.MaybeExecuted // whoever says so may have lost the answer
	}
	return mcp.Answered
}

func (s *site) statusError(resp *http.Response, data []byte) *StatusError {
	return &StatusError{
		Status: resp.StatusCode, ContentType: s.origin.excerpt([]byte(mediaType(resp))), Excerpt: s.origin.excerpt(data),
		RetryAfter: retryAfter(resp),
	}
}

// statusOnly returns what the status of a reply says whose body nobody needs.
func (s *site) statusOnly(resp *http.Response) error {
	return s.badStatus(resp, excerptOf(resp))
}

// excerptTime is how long the body of a reply may take of which the status says most.
const excerptTime = 2 * time.Second

// excerptOf returns the body of a reply that is no result, nothing if it is long or
// long in coming.
func excerptOf(resp *http.Response) []byte {
	timer := time.AfterFunc(excerptTime, func() { _ = resp.Body.Close() })
	defer timer.Stop()
	data, err := readLimited(resp, drainBytes)
	if err != nil {
		return nil
	}
	return data
}

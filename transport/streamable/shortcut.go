package streamable

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// A shortcut is an [http.RoundTripper] for the simplest and most frequent case: a
// small request over plain HTTP/1.1 to one origin, by way of no proxy. The caller's
// goroutine writes it at once and reads the reply itself; net/http has two goroutines
// for each connection, so that a request wakes three (docs/design/018-http-exchange.md).
// All other requests are left to net/http, whose limits hold here too.
type shortcut struct {
	rest    *http.Transport
	host    string // as requests name the origin
	address string // of the origin, to connect to
	idle    idleConns
}

// shorten returns what makes requests to an origin as rest does, and cheaper if it
// can.
func shorten(rest *http.Transport, origin *url.URL) http.RoundTripper {
	if !canPeek || origin.Scheme != "http" || strings.ContainsFunc(origin.Host, notPlain) {
		return rest
	}
	if rest.Proxy != nil {
		if proxy, err := rest.Proxy(&http.Request{URL: origin}); proxy != nil || err != nil {
			return rest
		}
	}
	return &shortcut{
		rest: rest, host: origin.Host,
		address: net.JoinHostPort(origin.Hostname(), portFor(origin)),
		idle:    idleConns{most: rest.MaxIdleConnsPerHost, time: rest.IdleConnTimeout},
	}
}

// notPlain reports whether a host with r in it needs the encodings of net/http: names
// that are not ASCII, and zones.
func notPlain(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"%<>\^`+"`{|}/", r)
}

// CloseIdleConnections closes connections that are not in use.
func (s *shortcut) CloseIdleConnections() {
	s.idle.close()
	s.rest.CloseIdleConnections()
}

// maxShortBody is how large a body may be that is written here. A peer may answer
// and close while a larger one is on its way, for which net/http has a goroutine.
const maxShortBody = 128 << 10

// takes reports whether a request is simple.
func (s *shortcut) takes(req *http.Request) bool {
	return req.URL.Scheme == "http" && req.URL.Host == s.host && (req.Host == s.host || req.Host == "") &&
		(req.Method == http.MethodPost || req.Method == http.MethodGet || req.Method == http.MethodDelete) &&
		!req.Close && req.TransferEncoding == nil && req.Trailer == nil && hasShortBody(req) && hasSimpleHeader(req) &&
		httptrace.ContextClientTrace(req.Context()) == nil
}

// hasShortBody reports whether the body of a request is in memory, and short, so that
// it can be written in one piece, and again.
func hasShortBody(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return req.ContentLength == 0
	}
	_, whole := req.Body.(io.WriterTo)
	return whole && req.GetBody != nil && req.ContentLength > 0 && req.ContentLength <= maxShortBody
}

// RoundTrip implements [http.RoundTripper].
func (s *shortcut) RoundTrip(req *http.Request) (*http.Response, error) {
	if !s.takes(req) {
		if err := handOver(req); err != nil {
			return nil, err
		}
		return s.rest.RoundTrip(req)
	}
	if b := pending(req); b != nil {
		return b.receive(req, nil, nil)
	}
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	for {
		c, err := s.connect(req)
		if err != nil {
			return nil, err
		}
		resp, err := s.exchange(c, req)
		if err == nil || !c.kept || !c.mayRepeat(req, err) || req.Context().Err() != nil {
			return resp, err
		}
		// The connection broke while nobody looked.
		if req, err = anew(req); err != nil {
			return nil, err
		}
	}
}

// connect returns a connection that is still one.
func (s *shortcut) connect(req *http.Request) (*shortConn, error) {
	if c := s.idle.take(); c != nil {
		return c, nil
	}
	if err := handOver(req); err != nil {
		return nil, err // connecting may take long
	}
	conn, err := s.rest.DialContext(req.Context(), "tcp", s.address)
	if err != nil {
		return nil, err
	}
	return newShortConn(conn, s.rest.MaxResponseHeaderBytes), nil
}

// anew returns a request that can be sent again.
func anew(req *http.Request) (*http.Request, error) {
	if req.GetBody == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := *req
	again.Body = body
	return &again, nil
}

// exchange sends a request and reads the header of its reply. The connection belongs to
// the reply, or is closed if there is none.
func (s *shortcut) exchange(c *shortConn, req *http.Request) (*http.Response, error) {
	b := &shortBody{pool: &s.idle, conn: c, ctx: req.Context()}
	b.detach = context.AfterFunc(b.ctx, c.hangup)
	c.head = appendHead(c.head[:0], req, s.host)
	sendErr := c.send(req)
	if _, unsent := errors.AsType[*unsentError](sendErr); unsent && c.kept {
		b.end(false)
		return nil, b.because(sendErr)
	}
	h := handoverOf(req)
	if sendErr != nil {
		// A peer that takes no more may have said why.
		_ = c.conn.SetReadDeadline(time.Now().Add(writePatience))
		h = nil
	}
	return b.receive(req, sendErr, h)
}

// receive reads the header of the reply to a request, which may be handed over. SendErr
// is why it was not sent as a whole, if so.
func (b *shortBody) receive(req *http.Request, sendErr error, h *handover) (*http.Response, error) {
	resp, err := b.conn.receive(req, h)
	if err == errHandedOver {
		h.req, h.sent = req, b
		return nil, err
	}
	if err != nil {
		b.end(false)
		if sendErr != nil {
			err = sendErr
		}
		return nil, b.because(err)
	}
	b.keep = sendErr == nil && !resp.Close && resp.StatusCode >= http.StatusOK
	if resp.Body == http.NoBody {
		b.end(b.keep)
		return resp, nil
	}
	b.Reader = resp.Body
	resp.Body = b
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		unzip(resp)
	}
	return resp, nil
}

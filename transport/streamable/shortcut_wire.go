package streamable

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"sync/atomic"
)

// hasSimpleHeader reports whether the header of a request is fit to be sent, and says
// nothing about the request or its connection that net/http must see to.
func hasSimpleHeader(req *http.Request) bool {
	for name, values := range req.Header {
		switch name {
		case "Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			return false
		}
		if !isToken(name) {
			return false
		}
		for _, value := range values {
			if !isFieldValue(value) {
				return false
			}
		}
	}
	return isFieldValue(req.URL.RequestURI())
}

const (
	agentHeader  = "User-Agent"
	defaultAgent = "Go-http-client/1.1" // of net/http
)

// appendHead appends the head of a request as net/http writes it.
func appendHead(b []byte, req *http.Request, host string) []byte {
	b = append(append(append(b, req.Method...), ' '), req.URL.RequestURI()...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), host...)
	if agents, ok := req.Header[agentHeader]; !ok {
		b = appendField(b, agentHeader, defaultAgent)
	} else if len(agents) > 0 && agents[0] != "" {
		b = appendField(b, agentHeader, agents[0])
	}
	if req.ContentLength > 0 || req.Method == http.MethodPost {
		b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), req.ContentLength, 10)
	}
	var memory [16]string
	names := memory[:0]
	for name := range req.Header {
		if name != agentHeader {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range req.Header[name] {
			b = appendField(b, name, value)
		}
	}
	return append(b, "\r\nAccept-Encoding: gzip\r\n\r\n"...)
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, "\r\n"...), name...)
	return append(append(b, ": "...), textproto.TrimString(value)...)
}

// A shortBody is the body of a reply on a [shortConn]. When it has been read to its
// end, the connection can be used again.
type shortBody struct {
	io.Reader // what is to be read

	pool   *idleConns
	conn   *shortConn
	ctx    context.Context // of the request
	detach func() bool     // the connection from ctx
	keep   bool            // the peer keeps the connection

	state atomic.Int32
}

// States of a shortBody.
const (
	bodyOpen  int32 = iota
	bodyRead        // to its end
	bodyEnded       // before that
)

var errBodyEnded = errors.New("the body of the reply has been closed")

// Read implements [io.Reader].
func (b *shortBody) Read(p []byte) (int, error) {
	if b.state.Load() == bodyEnded {
		return 0, b.because(errBodyEnded)
	}
	n, err := b.Reader.Read(p)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF:
		if b.state.CompareAndSwap(bodyOpen, bodyRead) {
			b.end(b.keep)
		}
		return n, io.EOF
	}
	_ = b.Close()
	return n, b.because(err)
}

// Close implements [io.Closer]. It ends a Read that waits.
func (b *shortBody) Close() error {
	if b.state.CompareAndSwap(bodyOpen, bodyEnded) {
		b.end(false)
	}
	return nil
}

// end gives back the connection. If the context has ended, somebody closes it just
// now.
func (b *shortBody) end(keep bool) {
	if !b.detach() {
		keep = false
	}
	if !b.conn.done(keep) {
		b.pool.put(b.conn)
	}
}

// because returns why the request or its context has ended.
func (b *shortBody) because(err error) error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return err
}

// unzip has the body of a reply unpacked, as net/http does if it has asked for that.
func unzip(resp *http.Response) {
	resp.Body = &unzipped{ReadCloser: resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Uncompressed = true
}

// An unzipped is a body that is packed.
type unzipped struct {
	io.ReadCloser

	unpacked *gzip.Reader // nil until the first Read
	err      error
}

// Read implements [io.Reader].
func (u *unzipped) Read(p []byte) (int, error) {
	if u.unpacked == nil && u.err == nil {
		u.unpacked, u.err = gzip.NewReader(u.ReadCloser)
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.unpacked.Read(p)
}

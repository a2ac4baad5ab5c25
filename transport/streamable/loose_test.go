package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A loose transport carries messages whose tokens stand on lines of their own, both
// ways: our own edges write none, since what comes in by HTTP may go out by lines.
type loose struct{ http.Transport }

func (l *loose) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		text := spread(string(body), "\r\n")
		req = req.Clone(req.Context())
		req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	}
	resp, err := l.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &looseBody{body: resp.Body, lines: bufio.NewReader(resp.Body), events: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return resp, nil
}

// A looseBody is a body of one JSON text in one line, or of events with one each.
type looseBody struct {
	body   io.Closer
	lines  *bufio.Reader
	events bool
	rest   bytes.Buffer
}

func (b *looseBody) Close() error { return b.body.Close() }

func (b *looseBody) Read(p []byte) (int, error) {
	for b.rest.Len() == 0 {
		line, err := b.lines.ReadString('\n')
		switch {
		case !b.events:
			line = spread(line, "\n")
		case strings.HasPrefix(line, "data: {"):
			line = spread(line, "\ndata: ")
		}
		b.rest.WriteString(line)
		if err != nil && line == "" {
			return 0, err
		}
	}
	return b.rest.Read(p)
}

// spread puts something after each bracket, colon and comma outside strings.
func spread(text, between string) string {
	var b strings.Builder
	start := strings.IndexAny(text, "{[")
	if start < 0 {
		return text
	}
	b.WriteString(text[:start])
	quoted := false
	for i := start; i < len(text); i++ {
		c := text[i]
		b.WriteByte(c)
		switch {
		case c == '\\' && quoted:
			i++
			b.WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte("{[:,", c) >= 0:
			b.WriteString(between)
		}
	}
	return b.String()
}

func serveLoosely(t *testing.T, h mcp.Handler, era mcp.Era) func(context.Context, transport.DialOptions) (transport.Edge, error) {
	url := listen(t, h, &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: era, Logger: logger}})
	return func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
		l := new(loose)
		t.Cleanup(l.CloseIdleConnections)
		return streamable.Dial(ctx, url, &streamable.DialOptions{DialOptions: opts, Transport: l})
	}
}

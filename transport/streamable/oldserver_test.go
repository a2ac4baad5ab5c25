package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// An oldServer is a scripted server of HTTP with SSE, for one client.
type oldServer struct {
	*peer
	stream chan string // what is still to be written to the stream; closed at its end

	streams atomic.Int32 // so far; only the last one is written to
}

// newOldServer returns a server at /sse whose stream begins with a text. POSTs
// are answered by post; nil answers as a server without tools does.
func newOldServer(t *testing.T, begin string, post func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message)) *oldServer {
	t.Helper()
	s := &oldServer{stream: make(chan string, 300)}
	if post == nil {
		post = (*oldServer).take
	}
	s.peer = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == "POST" {
			post(s, w, m)
			return
		}
		s.serveStream(w, r, begin)
	})
	s.url = s.origin() + "/sse"
	return s
}

func (s *oldServer) origin() string {
	return strings.TrimSuffix(strings.TrimSuffix(s.url, "/mcp"), "/sse")
}

func (s *oldServer) serveStream(w http.ResponseWriter, r *http.Request, begin string) {
	n := s.streams.Add(1)
	writeStream(w, begin)
	for {
		select {
		case text, more := <-s.stream:
			switch {
			case !more:
				return
			case n != s.streams.Load(): // its client has gone, and we have not noticed
				s.stream <- text
				return
			}
			writeMore(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

// take accepts a message and answers it on the stream.
func (s *oldServer) take(w http.ResponseWriter, m *jsonrpc.Message) {
	w.WriteHeader(http.StatusAccepted)
	s.answer(m)
}

// answer answers a message on the stream.
func (s *oldServer) answer(m *jsonrpc.Message) {
	switch {
	case m.Kind != jsonrpc.Request:
	case string(m.Method) == "initialize":
		s.stream <- resultEvent(m, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
	default:
		s.stream <- resultEvent(m, `{"content":[]}`)
	}
}

// atCalls answers the handshake, and has post answer all else.
func atCalls(post func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message)) func(*oldServer, http.ResponseWriter, *jsonrpc.Message) {
	return func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
		switch string(m.Method) {
		case "initialize", "notifications/initialized":
			s.take(w, m)
		default:
			post(s, w, m)
		}
	}
}

// endpointIs is the event that says where to post.
func endpointIs(uri string) string { return "event: endpoint\ndata: " + uri + "\n\n" }

// dialSSE connects to a server of HTTP with SSE until the test ends.
func dialSSE(t *testing.T, url string, opts *streamable.DialOptions) *transport.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := streamable.DialSSE(ctx, url, opts)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() { closeEdge(t, c) })
	return c
}

// notConnected returns why a server cannot be connected to.
func notConnected(t *testing.T, url string, opts *streamable.DialOptions) error {
	t.Helper()
	c, err := streamable.DialSSE(t.Context(), url, opts)
	if err == nil {
		closeEdge(t, c)
		t.Fatal("connected")
	}
	return err
}

// closeEdge closes an edge, and asserts that it does not take long.
func closeEdge(t *testing.T, e transport.Edge) {
	t.Helper()
	began := time.Now()
	if err := e.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("closing took %v", took)
	}
}

// mustCall makes a call that must succeed.
func mustCall(t *testing.T, h mcp.Handler) {
	t.Helper()
	if _, err := call(t, h, mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
}

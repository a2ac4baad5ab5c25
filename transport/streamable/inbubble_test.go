package streamable_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A bubbled is a server in this process, as an [http.RoundTripper], for bubbles: a POST
// is answered when the function for it returns, and what is written to its stream has
// been read when that returns.
type bubbled struct {
	t      *testing.T
	stream *io.PipeWriter // of GET; nil if there is none
	reader *io.PipeReader
	// post returns the body of the reply to a POST: JSON, an event stream if it begins
	// as one, or none.
	post func(ctx context.Context, m *jsonrpc.Message) string
}

func newBubbled(t *testing.T, post func(ctx context.Context, m *jsonrpc.Message) string) *bubbled {
	s := &bubbled{t: t, post: post}
	s.reader, s.stream = io.Pipe()
	return s
}

// say writes to the stream.
func (s *bubbled) say(text string) {
	if _, err := io.WriteString(s.stream, text); err != nil {
		s.t.Errorf("writing to the stream: %v", err)
	}
}

// RoundTrip implements [http.RoundTripper].
func (s *bubbled) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Request: r, Body: http.NoBody, ContentLength: -1}
	switch {
	case r.Method == http.MethodGet && s.stream == nil:
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	case r.Method == http.MethodGet:
		context.AfterFunc(r.Context(), func() { _ = s.reader.CloseWithError(io.EOF) })
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = s.reader
		return resp, nil
	case r.Method != http.MethodPost:
		return resp, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var m jsonrpc.Message
	if err := jsonrpc.Scan(body, &m); err != nil {
		s.t.Error(err)
	}
	switch reply := s.post(r.Context(), &m); {
	case reply == "":
		resp.StatusCode = http.StatusAccepted
	case strings.HasPrefix(reply, "{"):
		resp.Header.Set("Content-Type", "application/json")
		resp.Body = io.NopCloser(strings.NewReader(reply))
	default:
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = io.NopCloser(strings.NewReader(reply))
	}
	return resp, nil
}

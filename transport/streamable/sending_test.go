package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A lateReader is a RoundTripper that looks at the body of a request again when the
// request is over, as transports may that close it while they read.
type lateReader struct {
	next http.RoundTripper

	mu   sync.Mutex
	late []byte // guarded by mu
}

// RoundTrip implements [http.RoundTripper].
func (l *lateReader) RoundTrip(req *http.Request) (*http.Response, error) {
	body := req.Body
	resp, err := l.next.RoundTrip(req)
	if body != nil {
		_ = body.Close()
		late, readErr := io.ReadAll(body)
		if readErr == nil {
			err = errors.Join(err, errors.New("a closed body can be read"))
		}
		l.mu.Lock()
		l.late = append(l.late, late...)
		l.mu.Unlock()
	}
	return resp, err
}

// Requests do not share memory while anybody may read one, nor does a body give
// anything once it has been closed.
func TestBodiesOfRequestsAreApart(t *testing.T) {
	h := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return mcp.NewResult(mcp.DiscoverResult{SupportedVersions: []mcp.Revision{mcp.NewestModern}})
		case mcp.MethodListTools:
			return mcp.RawResult([]byte(`{"tools":[]}`)), nil
		}
		text, _ := req.Params.Lookup("text")
		return mcp.RawResult(append(append([]byte(`{"text":`), text...), '}')), nil
	})
	url := newServer(t, streamable.NewHandler(h, nil))
	late := &lateReader{next: http.DefaultTransport}
	c, err := streamable.Dial(t.Context(), url, &streamable.DialOptions{
		DialOptions: transport.DialOptions{Era: mcp.Modern}, Transport: late,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := jsonrpc.AppendString(nil, strings.Repeat(string(rune('a'+i)), 40<<10))
			params := jsonrpc.Trusted(append(append([]byte(`{"name":"x","text":`), text...), '}'))
			for range 20 {
				result, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: params}, mcp.NoCaller{})
				if got, _ := result.Lookup("text"); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%d: %.20s of %d bytes, %v", i, got, len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if len(late.late) > 0 {
		t.Errorf("%d bytes were read after the end", len(late.late))
	}
}

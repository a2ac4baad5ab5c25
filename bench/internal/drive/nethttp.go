package drive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// ConnectPlain connects the raw client, or one of the kind [NetHTTP], [Copied], [Typed]
// or [Apart].
func ConnectPlain(ctx context.Context, t *Task) (Runner, error) {
	if t.Kind == NetHTTP {
		return connectNetHTTP(t)
	}
	return ConnectRaw(ctx, t)
}

// Copied is the kind of the raw client that copies the text for each call, and that of
// each reply, and looks at neither: no client whose callers have strings costs less.
const Copied = "copied"

// Typed is the kind of the raw client that quotes the text for each call, checks each
// reply and decodes its text: the limit of clients that do.
const Typed = "typed"

// Apart is the kind of the client that is [Typed], and has a goroutine for each call in
// flight on a pipe: the limit of clients that have callers as well.
const Apart = "apart"

// NetHTTP is the kind of the client that is net/http and nothing else: prebuilt
// messages are sent, and nothing of the replies is looked at but their length.
const NetHTTP = "net/http"

func connectNetHTTP(t *Task) (Runner, error) {
	if t.Addr == "" {
		return nil, errUsage
	}
	transport := &http.Transport{MaxIdleConnsPerHost: t.InFlight}
	template := wire.CallTool(t.Revision, wire.Text(t.Size))
	var reply atomic.Int64 // length of the replies
	return &Callers{
		Call: func(ctx context.Context, text string) (string, error) {
			n, err := post(ctx, transport, t.URL(), template.Bytes)
			if err != nil {
				return "", err
			}
			if !reply.CompareAndSwap(0, n) && reply.Load() != n {
				return "", fmt.Errorf("a reply of %d bytes, want %d", n, reply.Load())
			}
			return text, nil
		},
		Ended: func() error {
			transport.CloseIdleConnections()
			return nil
		},
	}, nil
}

func post(ctx context.Context, over http.RoundTripper, url string, message []byte) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(message))
	if err != nil {
		return 0, err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["Accept"] = []string{"application/json, text/event-stream"}
	resp, err := over.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	_, err = io.ReadFull(resp.Body, make([]byte, resp.ContentLength))
	return resp.ContentLength, err
}

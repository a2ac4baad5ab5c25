package streamable

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// appendRequest returns the request that a call sends.
func appendRequest(call *inflight.Call, params *jsonrpc.Value, edits []jsonrpc.Edit) []byte {
	const around = 96 // of params, at most, as methods are short
	size := len(params.Raw()) + around
	for i := range edits {
		size += len(edits[i].Name) + len(edits[i].Value)
	}
	body := recycled(int64(size))
	if body == nil {
		body = make([]byte, size)
	}
	return jsonrpc.AppendRequest(body[:0], jsonrpc.IntID(call.ID), call.Request.Method, params, edits...)
}

// A sending is the body of an HTTP request, whose memory is used again when nobody
// reads it any more.
type sending struct {
	data []byte
	held atomic.Int32 // by how many readers, and by whoever makes the request
}

// newSending makes data the body of req. Its maker calls release when the reply is
// there.
func newSending(req *http.Request, data []byte) *sending {
	s := &sending{data: data}
	s.held.Store(1)
	req.ContentLength = int64(len(data))
	req.Body = s.open()
	req.GetBody = func() (io.ReadCloser, error) { return s.open(), nil }
	return s
}

func (s *sending) open() io.ReadCloser {
	s.held.Add(1)
	return &sendingReader{sending: s, left: s.data}
}

func (s *sending) release() {
	if s.held.Add(-1) == 0 {
		recycle(s.data)
	}
}

// A sendingReader reads a sending. Transports may close it while they read.
type sendingReader struct {
	sending *sending

	mu   sync.Mutex
	left []byte // nil after Close, guarded by mu
	done bool   // guarded by mu
}

var errBodyClosed = errors.New("the body of the request has been closed")

// Read implements [io.Reader].
func (r *sendingReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done:
		return 0, errBodyClosed
	case len(r.left) == 0:
		return 0, io.EOF
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *sendingReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.done, r.left = true, nil
		r.sending.release()
	}
	return nil
}

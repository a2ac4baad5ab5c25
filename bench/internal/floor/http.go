package floor

import (
	"io"
	"net/http"
	"strconv"
	"sync"
)

// buffers are what one exchange needs.
type buffers struct {
	in, out []byte
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

// readBody reads the body of r into b.in.
func (b *buffers) readBody(r *http.Request) error {
	if r.ContentLength < 0 {
		var err error
		b.in, err = io.ReadAll(r.Body)
		return err
	}
	n := int(r.ContentLength)
	if cap(b.in) < n {
		b.in = make([]byte, n)
	}
	b.in = b.in[:n]
	_, err := io.ReadFull(r.Body, b.in)
	return err
}

var contentTypeJSON = []string{"application/json"}

// writeJSON writes body with its length, so that it is sent in one piece.
func writeJSON(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentTypeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.Write(body)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	b := pool.Get().(*buffers)
	defer pool.Put(b)
	if err := b.readBody(r); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.out = s.answer(b.out[:0], b.in)
	if len(b.out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	writeJSON(w, b.out)
}

// EchoHTTP gives each body back as it came.
func EchoHTTP(w http.ResponseWriter, r *http.Request) {
	b := pool.Get().(*buffers)
	defer pool.Put(b)
	if err := b.readBody(r); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	writeJSON(w, b.in)
}

package faulttest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// serveHTTP is the step [ServeHTTP].
func (a *actor) serveHTTP(address string) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	h := &httpWorker{worker: &a.worker, session: rand.Text()}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	a.say([]byte(listener.Addr().String()))
	<-drained(a.streams[Stdin])
	return server.Close()
}

// listen listens at an address, which may be in use for a moment by one that was
// killed.
func listen(address string) (net.Listener, error) {
	const patience = 5 * time.Second
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		if err == nil || time.Since(began) > patience {
			return listener, err
		}
	}
}

// An httpWorker is a worker behind HTTP. A legacy one has one session, which all
// its clients share, and which does not survive it.
type httpWorker struct {
	worker  *worker
	session string
}

const sessionHeader = "Mcp-Session-Id"

// ServeHTTP implements [http.Handler].
func (h *httpWorker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m jsonrpc.Message
	if err := jsonrpc.Scan(body, &m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	initialize := string(m.Method) == mcp.MethodInitialize
	switch {
	case initialize && !h.worker.modern:
		w.Header().Set(sessionHeader, h.session)
	case !h.worker.modern && r.Header.Get(sessionHeader) != h.session && string(m.Method) != mcp.MethodDiscover:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	switch {
	case m.Kind != jsonrpc.Request:
		w.WriteHeader(http.StatusAccepted)
	case string(m.Method) == mcp.MethodCallTool:
		h.call(w, &m)
	default:
		plain(w, h.worker.answer(&m))
	}
}

func plain(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func (h *httpWorker) call(w http.ResponseWriter, m *jsonrpc.Message) {
	o, err := order(m)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer, err := h.worker.work(m, &o)
	if err != nil {
		die()
	}
	to := flushing{w, http.NewResponseController(w)}
	if !o.Stream && o.Fate != Notified {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		if o.Fate == Twice {
			o.Fate = "" // a reply holds one message
		}
		deliver(to, answer, nil, &o)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	deliver(to, event(answer), event(progress(m)), &o)
}

func event(data []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", data) }

// A flushing writer lets nothing wait: what was written before a death is sent.
type flushing struct {
	io.Writer

	control *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.control.Flush()
}

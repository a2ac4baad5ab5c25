package raw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A script is a connection whose other end says what was written before.
type script struct{ io.Reader }

func (script) Write(b []byte) (int, error) { return len(b), nil }
func (script) Close() error                { return nil }

func TestConnReadsBodies(t *testing.T) {
	long := strings.Repeat("x", 3*connBuffer)
	const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nContent-Type: text/event-stream\r\n\r\n"
	for name, c := range map[string]struct {
		response string
		want     reply
	}{
		"length":       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", reply{200, false, []byte("{}")}},
		"long":         {"HTTP/1.1 200 OK\r\nContent-Length: 196608\r\n\r\n" + long, reply{200, false, []byte(long)}},
		"chunks":       {chunked + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", reply{200, true, []byte("abcde")}},
		"long chunks":  {chunked + "3\r\nabc\r\n30000\r\n" + long + "\r\n0\r\n\r\n", reply{200, true, []byte("abc" + long)}},
		"accepted":     {"HTTP/1.1 202 Accepted\r\n\r\n", reply{202, false, nil}},
		"client error": {"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno", reply{400, false, []byte("no")}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.response), iotest.HalfReader(strings.NewReader(c.response))} {
				got, err := newConn(script{r}).do(nil)
				if err != nil {
					t.Fatal(err)
				}
				if got.status != c.want.status || got.events != c.want.events || !bytes.Equal(got.body, c.want.body) {
					t.Errorf("got %d, %v, %d bytes", got.status, got.events, len(got.body))
				}
			}
		})
	}
}

func TestConnRefuses(t *testing.T) {
	for name, response := range map[string]string{
		"nothing":           "",
		"half a head":       "HTTP/1.1 200 OK\r\n",
		"no status":         "HTTP/1.1\r\n\r\n",
		"short body":        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
		"bad length":        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"bad chunk":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"unended chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
		"until it closes":   "HTTP/1.1 200 OK\r\n\r\n{}",
		"closes each reply": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	} {
		if _, err := newConn(script{strings.NewReader(response)}).do(nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestEventStreamReply(t *testing.T) {
	const id = wire.FirstID
	message := `{"jsonrpc":"2.0","id":1000000000,"result":{}}`
	stream := "id: 1\ndata:\n\n" +
		"event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\n" +
		"event: message\ndata: " + message + "\n\n"
	r := reply{status: 200, events: true, body: []byte(stream)}
	got, err := r.message(id)
	if err != nil || string(got) != message {
		t.Fatalf("got %q, %v", got, err)
	}
	s := &shape{length: len(message), idAt: strings.Index(message, "1000")}
	if err := r.check(s, id); err != nil {
		t.Error(err)
	}
	if err := r.check(s, id+1); err == nil {
		t.Error("no error for another id")
	}
}

// A server that answers the first call well and a later one badly is caught.
func TestClientSeesBadReplies(t *testing.T) {
	for name, spoil := range map[string]func(string) string{
		"another id": func(s string) string { return strings.Replace(s, `"id":1`, `"id":2`, 1) },
		"longer":     func(s string) string { return strings.Replace(s, "{", "{ ", 1) },
		"shorter":    func(string) string { return "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			answer := func(body []byte) string {
				reply := string(body) // an echo
				if calls++; calls > 5 {
					reply = spoil(reply)
				}
				return reply
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				io.WriteString(w, answer(body))
			}))
			defer srv.Close()
			peer := Peer{Revision: wire.Legacy, Echo: true}
			h := NewHTTP(srv.Listener.Addr().String(), peer)
			defer h.Close()
			if _, err := h.Run(Load{Text: "x", InFlight: 1, Calls: 10}); err == nil {
				t.Error("HTTP: no error")
			}

			calls = 0
			p, stop := pipeTo(peer, answer)
			defer stop()
			if _, err := p.Run(Load{Text: "x", InFlight: 1, Calls: 10}); err == nil {
				t.Error("pipe: no error")
			}
		})
	}
}

// pipeTo returns a client of a server that answers each line.
func pipeTo(peer Peer, answer func([]byte) string) (p *Pipe, stop func()) {
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	done := make(chan struct{})
	p = NewPipe(clientOut, clientIn, peer)
	go func() {
		defer close(done)
		server := NewPipe(nil, serverIn, peer) // for its lines
		for {
			line, err := server.lines.Next()
			if err != nil {
				return
			}
			if _, err := io.WriteString(serverOut, answer(line)+"\n"); err != nil {
				return
			}
		}
	}()
	return p, func() { p.Close(); <-done }
}

func TestPipeSkipsNotifications(t *testing.T) {
	peer := Peer{Revision: wire.Legacy}
	p, stop := pipeTo(peer, func(line []byte) string {
		id := line[len(`{"jsonrpc":"2.0","id":`):][:wire.IDDigits]
		return `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" +
			`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[{"type":"text","text":"x"}]}}`
	})
	defer stop()
	s, err := p.Run(Load{Text: "x", InFlight: 1, Calls: 10})
	if err != nil || s.Calls != 10 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestQuantile(t *testing.T) {
	s := NewSample(0, nil)
	if s.Quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	s.Latencies = append(s.Latencies, 1, 2, 3, 4)
	if s.Quantile(0.5) != 3 || s.Quantile(0.99) != 4 || s.Quantile(1) != 4 {
		t.Errorf("quantiles %v, %v, %v", s.Quantile(0.5), s.Quantile(0.99), s.Quantile(1))
	}
}

func TestInFlightIsBounded(t *testing.T) {
	for _, n := range []int{0, maxSlots + 1} {
		if _, err := NewHTTP("127.0.0.1:1", Peer{}).Run(Load{InFlight: n}); err == nil {
			t.Errorf("%d: no error", n)
		}
	}
}

// TestCallersApart: each has its own replies, and a wrong one ends them all.
func TestCallersApart(t *testing.T) {
	for i := range 4 {
		spoiled, typed := i&1 != 0, i&2 != 0
		var calls atomic.Int64
		p, stop := pipeTo(Peer{Revision: wire.Legacy, Apart: true, Typed: typed}, func(line []byte) string {
			var m struct{ ID int64 }
			if err := json.Unmarshal(line, &m); err != nil {
				t.Error(err)
			}
			if calls.Add(1) == 10 && spoiled {
				m.ID++
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"x"}]}}`, m.ID)
		})
		load := Load{Text: "x", InFlight: 4, Calls: 100}
		s, err := p.Run(load)
		if stop(); (err != nil) != spoiled || err == nil && (s.Calls != load.Calls || calls.Load() != int64(load.Calls)+1) {
			t.Errorf("spoiled %v: %+v after %d calls, %v", spoiled, s, calls.Load(), err)
		}
	}
}

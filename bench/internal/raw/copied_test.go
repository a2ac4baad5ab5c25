package raw

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// What a caller has is its own: neither the next request nor the next reply changes it.
func TestCopiedCallMovesTheText(t *testing.T) {
	call := newCopiedCall("text")
	prebuilt := []byte("a request with a text")
	sent := call.request(prebuilt)
	if string(sent) != string(prebuilt) || &sent[0] == &prebuilt[0] {
		t.Errorf("%q is sent in place of %q, or is the same memory", sent, prebuilt)
	}
	reply := []byte("a reply")
	call.keep(reply)
	got := call.text
	copy(reply, "another")
	if got != "a re" {
		t.Errorf("the caller has %q", got)
	}
	if call.keep([]byte("a")); call.text != "a" {
		t.Errorf("of a short reply it has %q", call.text)
	}
}

// A copied client calls over both transports, and ends at a reply of another length.
func TestCopiedClients(t *testing.T) {
	for _, spoiled := range []bool{false, true} {
		calls := 0
		answer := func(body []byte) string {
			calls++
			text := "x"
			if spoiled && calls > 5 {
				text = "xx"
			}
			id := body[len(wire.IDPrefix):][:wire.IDDigits]
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
		}
		peer := Peer{Revision: wire.Legacy, Copied: true}
		load := Load{Text: "x", InFlight: 1, Calls: 20}
		p, stop := pipeTo(peer, answer)
		s, err := p.Run(load)
		if stop(); (err != nil) != spoiled || err == nil && s.Calls != load.Calls {
			t.Errorf("pipe, spoiled %v: %+v, %v", spoiled, s, err)
		}

		calls = 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			io.WriteString(w, answer(body))
		}))
		h := NewHTTP(srv.Listener.Addr().String(), peer)
		if s, err = h.Run(load); (err != nil) != spoiled || err == nil && s.Calls != load.Calls {
			t.Errorf("HTTP, spoiled %v: %+v, %v", spoiled, s, err)
		}
		h.Close()
		srv.Close()
	}
}

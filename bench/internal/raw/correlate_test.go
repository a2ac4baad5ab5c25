package raw_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/bench/internal/floor"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A spoiler changes the body of every tenth reply.
type spoiler struct {
	calls atomic.Int64
	spoil func([]byte) []byte
}

func (s *spoiler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply := httptest.NewRecorder()
	new(floor.Server).ServeHTTP(reply, r)
	body := reply.Body.Bytes()
	if bytes.Contains(body, []byte("connection ")) && s.calls.Add(1)%10 == 0 {
		body = s.spoil(body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(reply.Code)
	w.Write(body)
}

func TestCorrelationFindsWhatIsNotTheReplyToItsCall(t *testing.T) {
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	tests := []struct {
		name           string
		spoil          func([]byte) []byte
		crossed, wrong int
	}{
		{name: "nothing", spoil: func(b []byte) []byte { return b }},
		{name: "another id", spoil: replace(`"id":1000000`, `"id":1000009`), crossed: 10},
		{name: "another connection's text", spoil: replace("connection 000", "connection 009"), crossed: 10},
		{name: "no call's text", spoil: replace("connection", "collection"), wrong: 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// The first call, which is learned from, is spoiled by nobody.
			server := httptest.NewServer(&spoiler{spoil: test.spoil})
			defer server.Close()
			c := &raw.Correlation{
				Addr: strings.TrimPrefix(server.URL, "http://"), Peer: raw.Peer{Revision: wire.Modern}, Connections: 1, Calls: 100,
			}
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.Done() != 100 || c.Crossed() != test.crossed || c.Wrong() != test.wrong {
				t.Errorf("%d calls, %d crossed, %d wrong; not 100, %d, %d", c.Done(), c.Crossed(), c.Wrong(), test.crossed, test.wrong)
			}
		})
	}
}

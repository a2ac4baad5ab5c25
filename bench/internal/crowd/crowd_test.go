package crowd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/bench/internal/crowd"
)

// A fake answers a crowd's calls, and every tenth in another way.
type fake struct {
	// spoil returns the messages of a reply, given the right one.
	spoil func(right string) []string
	calls atomic.Int64
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Arguments crowd.Arguments
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Mcp-Session-Id", "s")
	if m.Method == "initialize" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`, m.ID)
		return
	}
	right := reply(string(m.ID), m.Params.Arguments.Who)
	bodies := []string{right}
	if f.calls.Add(1)%10 == 0 {
		bodies = f.spoil(right)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, body := range bodies {
		fmt.Fprintf(w, "data: %s\n\n", body)
	}
}

func reply(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
}

func TestWhatMayNotBeIsFound(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"client 99 call 1"}}`
	for _, test := range []struct {
		name                          string
		spoil                         func(right string) []string
		crossed, wrong, lost, doubled int
	}{
		{name: "nothing", spoil: func(right string) []string { return []string{right} }},
		{
			name:    "another id",
			spoil:   func(right string) []string { return []string{reply(`"none"`, "client 0 call 1")} },
			crossed: 10, lost: 10,
		},
		{
			name:    "another's text",
			spoil:   func(right string) []string { return []string{strings.Replace(right, "client ", "client 7", 1)} },
			crossed: 10,
		},
		{name: "no call's text", spoil: func(right string) []string { return []string{strings.Replace(right, "client", "guest", 1)} }, wrong: 10},
		{name: "no answer", spoil: func(string) []string { return nil }, lost: 10},
		{name: "two answers", spoil: func(right string) []string { return []string{right, right} }, doubled: 10},
		{name: "another's question", spoil: func(right string) []string { return []string{question, right} }, crossed: 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(&fake{spoil: test.spoil})
			defer server.Close()
			c := &crowd.Crowd{Addr: strings.TrimPrefix(server.URL, "http://"), Clients: 3, InFlight: 2, Calls: 100}
			f, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := crowd.Figures{Crossed: test.crossed, Wrong: test.wrong, Lost: test.lost, Doubled: test.doubled}
			if f.Crossed != want.Crossed || f.Wrong != want.Wrong || f.Lost != want.Lost || f.Doubled != want.Doubled {
				t.Errorf("%+v, want %+v", f, want)
			}
			if c.Done() != 100 || f.Bad() != want.Bad() || f.Answered+f.Lost+f.Wrong+f.Doubled+f.Crossed < 100 {
				t.Errorf("%d calls, %+v", c.Done(), f)
			}
		})
	}
}

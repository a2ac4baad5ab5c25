package streamable_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestQuestionOnTheGetStreamDuringCalls goes to the client whose calls are in
// flight, and to nobody if there are several.
func TestQuestionOnTheGetStreamDuringCalls_B151(t *testing.T) {
	for _, tt := range []struct {
		name         string
		clients      []string // that have a call in flight
		want         string
		unattributed int64
	}{
		{"one call", []string{"a"}, `"result":{"from":"a"}`, 0},
		{"two calls of one client", []string{"a", "a"}, `"result":{"from":"a"}`, 0},
		{"calls of two clients", []string{"a", "b"}, `"error":{"code":-32603,`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			started, onGet, over := make(chan struct{}, 10), make(chan string), make(chan struct{})
			answered := make(chan string, 1)
			p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case r.Method == "GET":
					writeStream(w, ":\n\n")
					select {
					case text := <-onGet:
						writeMore(w, event(text))
					case <-r.Context().Done():
					}
					<-r.Context().Done()
				case m.Kind == jsonrpc.Response:
					w.WriteHeader(http.StatusAccepted)
					answered <- string(m.Body.Raw())
				case string(m.Method) == mcp.MethodCallTool:
					started <- struct{}{}
					<-over
					writeResult(w, m, `{}`)
				default:
					justAnswer(w, r, m)
				}
			}))
			var log journal
			opts := knownEra(mcp.Legacy)
			opts.Capabilities = []byte(`{"elicitation":{}}`)
			opts.Logger = log.logger()
			c := dial(t, p.url, opts)
			var calls sync.WaitGroup
			for _, client := range tt.clients {
				req := toolRequest("t", `{}`)
				req.Meta = mcp.Metadata{Revision: mcp.Revision20251125, Session: client}
				calls.Go(func() {
					if _, err := c.Handle(t.Context(), req, answering(client)); err != nil {
						t.Error(err)
					}
				})
				await(t, started)
			}
			onGet <- `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":` + question + `}`
			await(t, answered)
			close(over)
			calls.Wait()
			found := false
			for _, s := range p.seen("POST") {
				found = found || strings.Contains(s.body, `"id":"q"`) && strings.Contains(s.body, tt.want)
			}
			if !found || c.Unattributed() != tt.unattributed {
				t.Errorf("%d are counted; no answer has %s: %q", c.Unattributed(), tt.want, p.seen("POST"))
			}
			if told := strings.Contains(log.String(), "several clients"); told != (tt.unattributed > 0) {
				t.Errorf("the log says %s", log.String())
			}
		})
	}
}

// answering is a client that answers every question by its name.
type answering string

func (answering) Notify(context.Context, *mcp.Notification) error { return nil }

func (a answering) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult([]byte(`{"from":"` + string(a) + `"}`)), nil
}

// TestRootsThroughTheGetStream: a server that asks for them right after its handshake
// has them before the first call of a modern client.
func TestRootsThroughTheGetStream_B041_B151(t *testing.T) {
	onGet := make(chan string, 10)
	answers := make(chan string, 10)
	p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == "GET":
			writeStream(w, ":\n\n", event(`{"jsonrpc":"2.0","id":"r1","method":"roots/list"}`))
			for {
				select {
				case text := <-onGet:
					writeMore(w, event(text))
				case <-r.Context().Done():
					return
				}
			}
		case m.Kind == jsonrpc.Response:
			answers <- m.ID.String() + " " + string(m.Body.Raw())
			w.WriteHeader(http.StatusAccepted)
		case string(m.Method) == mcp.NotificationRootsListChanged:
			w.WriteHeader(http.StatusAccepted)
			onGet <- `{"jsonrpc":"2.0","id":"r2","method":"roots/list"}`
		case string(m.Method) == mcp.MethodPing:
			// The question has come by another way, and may be on it yet.
			answers <- await(t, answers)
			writeResult(w, m, `{}`)
		case string(m.Method) == mcp.MethodCallTool:
			var got []string
			for len(answers) > 0 {
				got = append(got, <-answers)
			}
			slices.Sort(got)
			if len(got) != 2 || !strings.Contains(got[0], "-32603") || got[1] != `"r2" {"roots":[]}` {
				t.Errorf("the server has %q at the first call", got)
			}
			writeResult(w, m, `{}`)
		default:
			justAnswer(w, r, m)
		}
	}))
	opts := knownEra(mcp.Legacy)
	opts.Capabilities = []byte(`{"roots":{}}`)
	c := dial(t, p.url, opts)
	req := toolRequest("t", `{}`)
	req.Meta = mcp.Metadata{Revision: mcp.Revision20260728, Session: "m"}
	if _, err := c.Handle(t.Context(), req, rooted{}); err != nil {
		t.Error(err)
	}
}

// rooted is a client without roots that can be asked for them.
type rooted struct{}

func (rooted) Notify(context.Context, *mcp.Notification) error { return nil }

func (rooted) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult([]byte(`{"roots":[]}`)), nil
}

package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// FuzzServe feeds a listener with whatever lines: it answers each request that
// has an id exactly once, and writes nothing but messages.
func FuzzServe(f *testing.F) {
	for _, line := range noise {
		f.Add([]byte(line), false)
	}
	f.Add([]byte(initLine+"\n"+initializedLine+"\n"+`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), false)
	f.Add([]byte(listenLine("1", `{"toolsListChanged":true}`)+"\n"+slowCall(`1`)), false)
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","method":"y"},3]`), true)
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"panic",`+modernMetaJSON+`}}`), false)
	f.Fuzz(func(t *testing.T, input []byte, plain bool) {
		var output journal
		link := transport.NewLineLink(bytes.NewReader(input), &output, func() error { return nil }, transport.LineOptions{MaxLine: 1 << 16})
		s := newServer()
		s.notified = make(chan string, len(input)+1)
		s.slow = make(chan struct{}, len(input)+1)
		close(s.release)
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > patience/2 {
				t.Errorf("took %v, input %q", took, input)
			}
		}()
		err := transport.Serve(t.Context(), link, s, transport.ServeOptions{Plain: plain, Drain: patience, MaxQueued: len(input) + 1})
		if err != nil {
			t.Fatal(err)
		}
		want := expected(input, plain)
		lines := jsonrpc.NewLineReader(bytes.NewReader(output.text.Bytes()), 64<<20)
		for {
			line, err := lines.ReadLine()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			items := [][]byte{line}
			if plain && jsonrpc.IsBatch(line) {
				if items, err = jsonrpc.SplitBatch(line); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
			for _, item := range items {
				var m jsonrpc.Message
				if err := jsonrpc.Scan(item, &m); err != nil {
					t.Fatalf("wrote %q: %v", item, err)
				}
				if m.Kind == jsonrpc.Response && !m.ID.IsZero() {
					want[m.ID.Key()]--
				}
			}
		}
		for id, n := range want {
			if n != 0 {
				t.Errorf("id %s is %d answers short, input %q, output %q", id, n, input, output.String())
			}
		}
	})
}

// expected returns how many answers each id gets. Ids that a cancellation names
// are left out: whether it comes in time is chance.
func expected(input []byte, plain bool) map[string]int {
	want := make(map[string]int)
	cancelled := make(map[string]bool)
	take := func(data []byte) {
		var m jsonrpc.Message
		err := jsonrpc.Scan(data, &m)
		if _, ok := jsonrpc.RawID(m.ID.Raw()); !ok {
			m.ID = jsonrpc.ID{}
		}
		switch {
		case m.Kind == jsonrpc.Request && !m.ID.IsZero():
			want[m.ID.Key()]++
		case m.Kind == jsonrpc.Invalid && !m.ID.IsZero():
			want[m.ID.Key()]++
		case m.Kind == jsonrpc.Notification && err == nil && string(m.Method) == mcp.NotificationCancelled:
			raw, _ := m.Body.Lookup("requestId")
			if id, ok := jsonrpc.RawID(raw); ok {
				cancelled[id.Key()] = true
			}
		}
	}
	lines := jsonrpc.NewLineReader(bytes.NewReader(input), 1<<16)
	revision := mcp.Revision("") // batches are served in one of them
	for {
		line, err := lines.ReadLine()
		if err == io.EOF {
			break
		}
		if err != nil {
			continue
		}
		var m jsonrpc.Message
		if jsonrpc.Scan(line, &m) == nil {
			take(line)
			if string(m.Method) == mcp.MethodInitialize && m.Kind == jsonrpc.Request {
				revision = "?" // whatever comes of it
			}
			continue
		}
		if !jsonrpc.IsBatch(line) {
			take(line)
			continue
		}
		items, err := jsonrpc.SplitBatch(line)
		if err != nil || !plain && revision == "" {
			continue
		}
		if !plain {
			return nil // depends on what initialize made of it
		}
		for _, item := range items {
			take(item)
		}
	}
	if !plain {
		for id := range cancelled {
			delete(want, id)
		}
	}
	return want
}

// FuzzDial feeds a dialing edge with whatever a server may write: no call is
// left without an end, and none gets a result that is no object.
func FuzzDial(f *testing.F) {
	for _, line := range noise {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"3","error":{"code":0}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		in, server := io.Pipe()
		requests, out := io.Pipe()
		link := transport.NewLineLink(in, out, func() error { return errors.Join(in.Close(), out.Close()) }, transport.LineOptions{MaxLine: 1 << 16})
		go func() {
			_, _ = requests.Read(make([]byte, 1024))
			_, _ = io.WriteString(server, `{"jsonrpc":"2.0","id":1,"result":`+initialized(mcp.Revision20250326)+"}\n")
			_, _ = io.Copy(io.Discard, requests)
		}()
		conn, err := transport.Dial(t.Context(), link, transport.DialOptions{Era: mcp.Legacy, Capabilities: []byte(`{"elicitation":{}}`)})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 3)
		for range cap(ended) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				result, err := conn.Handle(ctx, withToken(toolCall(legacyMeta("a")), "1"), newListener())
				if err == nil && !result.IsObject() {
					t.Errorf("got %s", result.Raw())
				}
				ended <- err
			}()
		}
		_, _ = server.Write(append(input, '\n'))
		_ = server.Close()
		for range cap(ended) {
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("a call has not ended")
			}
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

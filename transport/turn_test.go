package transport_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestFastAndSlowRequests mixes them, so that the right to read changes hands:
// every request is answered, whoever serves it, and none waits behind another.
func TestFastAndSlowRequests_P1(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	p, _ := serve(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if name, _ := req.Params.LookupString("name"); name == "slow" {
			select {
			case <-time.After(8 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return mcp.Result{}, nil
	}), transport.ServeOptions{})
	id := 0
	for range 60 {
		// A burst, of which the last is slow at times. Then nothing more comes
		// until all are answered.
		var lines []string
		for range 1 + rnd.IntN(40) {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"fast",%s}}`, id, modernMetaJSON))
			id++
		}
		if rnd.IntN(3) == 0 {
			last := &lines[rnd.IntN(len(lines))]
			*last = strings.Replace(*last, `"fast"`, `"slow"`, 1)
		}
		go p.say(lines...)
		seen := make(map[string]bool)
		for range lines {
			seen[p.message().ID.Key()] = true
		}
		if len(seen) != len(lines) {
			t.Fatalf("%d of %d were answered", len(seen), len(lines))
		}
	}
}

// TestSlowRequestHoldsUpNothing: neither a cancellation nor the answer to a
// question nor another request waits behind one that the reader has taken on
// itself.
func TestSlowRequestHoldsUpNothing(t *testing.T) {
	s := newServer()
	p, _ := serve(t, s, transport.ServeOptions{})
	fast := func(n int) {
		for i := range n {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"fast %d","method":"tools/call","params":{"name":"x",%s}}`, i, modernMetaJSON))
			p.message()
		}
	}
	for round := range 10 {
		fast(30) // from here on the reader serves requests itself
		id := fmt.Sprint(round)
		p.say(slowCall(id))
		receive(t, "the slow one", s.slow)
		fast(1)
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		fast(1)
	}
}

// TestQuestionOfTheReadersOwnRequest: the answer is read although the request
// that waits for it is served by the reader.
func TestQuestionOfTheReadersOwnRequest(t *testing.T) {
	s := newServer()
	p, _ := serve(t, s, transport.ServeOptions{})
	p.handshakeWith(mcp.Revision20250618)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`
	for i := range 5 {
		for range 30 {
			p.say(fmt.Sprintf(call, i, "x"))
			p.message()
		}
		p.say(fmt.Sprintf(call, i, "ask"))
		p.answer(p.expect(mcp.MethodElicit), `{"action":"accept"}`)
		if m := p.message(); string(m.Body.Raw()) != `{"action":"accept"}` {
			t.Errorf("got %s", m.Body.Raw())
		}
	}
}

// TestEndOfInputFlushesHeldAnswers: answers that wait for each other while input
// is at hand must not wait for more of it when it has ended.
func TestEndOfInputFlushesHeldAnswers_D26_S228(t *testing.T) {
	for range 20 {
		var input strings.Builder
		const requests = 300
		for i := range requests {
			fmt.Fprintf(&input, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x",%s}}`+"\n", i, modernMetaJSON)
		}
		var output journal
		link := transport.NewLineLink(strings.NewReader(input.String()), &output, func() error { return nil }, transport.LineOptions{})
		err := transport.Serve(t.Context(), link, newServer(), transport.ServeOptions{MaxQueued: requests})
		if n := strings.Count(output.String(), `"result"`); n != requests || err != nil {
			t.Fatalf("%d of %d were answered, err %v", n, requests, err)
		}
	}
}

// TestIDMayBeUsedAgain as soon as the answer has been read.
func TestIDMayBeUsedAgain(t *testing.T) {
	p, _ := serve(t, newServer(), transport.ServeOptions{})
	for range 500 {
		p.say(strings.Replace(slowCall("1"), "slow", "x", 1))
		if m := p.message(); m.Failed {
			t.Fatalf("got %s", m.Body.Raw())
		}
	}
}

// TestReaderCountsItsOwnRequests: the limit holds also for requests that the
// reader has taken on itself because others before them were fast.
func TestReaderCountsItsOwnRequests_D28(t *testing.T) {
	const limit = 4
	s := newServer()
	p, _ := serve(t, s, transport.ServeOptions{MaxInFlight: limit})
	var running int
	for i := range 3 * limit {
		for j := range 20 {
			if running == limit {
				break // nothing is served any more
			}
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d %d","method":"tools/call","params":{"name":"x",%s}}`, i, j, modernMetaJSON))
			p.message()
		}
		p.say(slowCall(fmt.Sprint(i)))
		if running < limit {
			receive(t, "a slow call", s.slow)
			running++
		}
	}
	p.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`) // answered after all before it was taken up
	p.message()
	if n := len(s.slow); n != 0 {
		t.Errorf("%d more run", n)
	}
	close(s.release)
	seen := make(map[string]bool)
	for range 3 * limit {
		seen[p.message().ID.Key()] = true
	}
	if len(seen) != 3*limit {
		t.Errorf("%d were answered", len(seen))
	}
}

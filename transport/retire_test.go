package transport_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestRetiredEdgeLetsItsCallsEnd: it takes no others, and is closed after the last of
// them, whatever that ends it by.
func TestRetiredEdgeLetsItsCallsEnd_P1_P7(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		for _, tt := range []struct {
			name string
			end  func(conn *transport.Conn, p *peer, give context.CancelFunc)
			kind mcp.FailureKind // empty if the call has an answer
		}{
			{"by an answer", nil, ""},
			{"by the end of patience", func(_ *transport.Conn, _ *peer, give context.CancelFunc) { give() }, mcp.ConnectionLost},
			{"by the end of the link", func(_ *transport.Conn, p *peer, _ context.CancelFunc) { _ = p.conn.Close() }, mcp.ConnectionLost},
			{"by Close", func(conn *transport.Conn, _ *peer, _ context.CancelFunc) { _ = conn.Close() }, mcp.ConnectionLost},
		} {
			t.Run(era.String()+", "+tt.name, func(t *testing.T) {
				conn, p := connect(t, transport.DialOptions{Era: era}, transport.LineOptions{})
				meta := mcp.Metadata{Session: "a"}
				going := start(t, conn, toolCall(meta), mcp.NoCaller{})
				asked := p.expect(mcp.MethodCallTool)
				patience, give := context.WithCancel(t.Context())
				defer give()
				retired := make(chan error, 2)
				for range 2 {
					go func() { retired <- conn.Retire(patience) }()
				}
				receive(t, "the end of the edge", conn.Done())
				if conn.Err() == nil {
					t.Error("the edge has ended for no reason")
				}
				late := start(t, conn, toolCall(meta), mcp.NoCaller{})
				if e := late.failure(t); e.Kind != mcp.ConnectionLost || e.Outcome != mcp.NotSent || e.Method != mcp.MethodCallTool {
					t.Errorf("a call that came after it: %v", e)
				}
				select {
				case err := <-retired:
					t.Errorf("it was not waited for the call: %v", err)
				default:
				}
				if tt.end == nil {
					p.answer(asked, `{"a":1}`)
					if got, err := going.wait(t); got != `{"a":1}` || err != nil {
						t.Errorf("the call: %s, %v", got, err)
					}
				} else {
					go p.drain()
					tt.end(conn, p, give)
					if e := going.failure(t); e.Kind != tt.kind || e.Outcome != mcp.MaybeExecuted {
						t.Errorf("the call: %v", e)
					}
				}
				for range 2 {
					if err := receive(t, "the end of Retire", retired); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// TestRetiredEdgeEndsListenCalls: they have no end of their own.
func TestRetiredEdgeEndsListenCalls(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		conn, p := connect(t, transport.DialOptions{Era: era}, transport.LineOptions{})
		filter := mcp.Filter{ToolsListChanged: true, Session: true}
		l := newListener()
		listening := start(t, conn, &mcp.Request{Method: mcp.MethodListen, Params: filter.Params()}, l)
		if era == mcp.Modern {
			p.expect(mcp.MethodListen)
		} else {
			receive(t, "the acknowledgement", l.got)
		}
		go p.drain()
		if err := conn.Retire(t.Context()); err != nil {
			t.Error(err)
		}
		if e := listening.failure(t); e.Kind != mcp.ConnectionLost {
			t.Errorf("%s: %v", era, e)
		}
	}
}

// TestRetiredEdgeMakesAllRequestsOfACall: one call may take several.
func TestRetiredEdgeMakesAllRequestsOfACall(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	going := start(t, conn, toolCall(mcp.Metadata{Session: "a", LogLevel: "debug"}), mcp.NoCaller{})
	setting := p.expect(mcp.MethodSetLevel)
	retired := make(chan error, 1)
	go func() { retired <- conn.Retire(t.Context()) }()
	receive(t, "the end of the edge", conn.Done())
	p.answer(setting, `{}`)
	p.answer(p.expect(mcp.MethodCallTool), `{"a":1}`)
	if got, err := going.wait(t); got != `{"a":1}` || err != nil {
		t.Errorf("the call: %s, %v", got, err)
	}
	if err := receive(t, "the end of Retire", retired); err != nil {
		t.Error(err)
	}
}

func TestRetiringAnIdleEdge(t *testing.T) {
	conn, _ := connect(t, transport.DialOptions{}, transport.LineOptions{})
	for range 2 {
		if err := conn.Retire(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !errors.Is(conn.Err(), mcp.ErrClosed) {
		t.Errorf("it has ended by %v", conn.Err())
	}
}

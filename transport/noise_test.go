package transport_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestServerThatWritesNoMessagesIsGivenUp_R15: what is said between garbage counts,
// and so does a pause.
func TestServerThatWritesNoMessagesIsGivenUp_R15(t *testing.T) {
	const limit = 5
	garbage := []string{"up and running", `{"level":"info"}`, "[1,2]", "\xff", `{"jsonrpc":"1.0"}`}
	const message = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	for _, tt := range []struct {
		name    string
		limit   int
		say     func(p *peer)
		givenUp string // the end of the error; empty for none
	}{
		{"as many as are allowed", limit, func(p *peer) { p.say(garbage...) }, ""},
		{"one more", limit, func(p *peer) { p.say(append(garbage, "x")...) },
			"the server wrote 6 lines in a row that are no messages of MCP, the limit MaxNoise is 5"},
		{"lines that are too long", limit, func(p *peer) {
			for range limit + 1 {
				p.say(strings.Repeat("x", 3000))
			}
		}, "the limit MaxNoise is 5"},
		{"messages between them", limit, func(p *peer) {
			for range 4 {
				p.say(append(garbage, message)...)
			}
		}, ""},
		{"pauses between them", limit, func(p *peer) {
			for range 4 * limit {
				p.say("x")
				<-time.After(1100 * time.Millisecond)
			}
		}, ""},
		{"the default", 0, func(p *peer) { p.write(strings.Repeat("x\n", transport.DefaultMaxNoise)) }, ""},
		{"one more than the default", 0, func(p *peer) { p.write(strings.Repeat("x\n", transport.DefaultMaxNoise+1)) },
			fmt.Sprintf("the limit MaxNoise is %d", transport.DefaultMaxNoise)},
		{"no limit", -1, func(p *peer) { p.write(strings.Repeat("x\n", 2*transport.DefaultMaxNoise)) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, done := dial(t, transport.DialOptions{Era: mcp.Legacy, MaxNoise: tt.limit}, transport.LineOptions{MaxLine: 2000})
				p.handshake(mcp.Revision20250618)
				conn := receive(t, "the connection", done).conn
				call := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
				m := p.expect(mcp.MethodCallTool)
				tt.say(p)
				if tt.givenUp == "" {
					p.answer(m, `{"content":[]}`)
				}
				got, err := call.wait(t)
				switch {
				case tt.givenUp == "" && got != `{"content":[]}`:
					t.Errorf("got %s, %v", got, err)
				case tt.givenUp != "":
					receive(t, "the end", conn.Done())
					if err == nil || conn.Err() == nil || !strings.HasSuffix(conn.Err().Error(), tt.givenUp) {
						t.Errorf("got %s, %v; the connection ended with %v", got, err, conn.Err())
					}
					for p.line() != "" { // the link is closed as well
					}
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A lossyLink loses the messages which say so.
type lossyLink struct{ transport.Link }

func (l lossyLink) Read() ([]byte, error) {
	data, err := l.Link.Read()
	if string(data) == "lost" {
		return nil, &mcp.CallError{Kind: mcp.LimitExceeded, Limit: "MaxBody", Outcome: mcp.MaybeExecuted}
	}
	return data, err
}

// TestServerWhoseMessagesAreAllLostIsGivenUp_R15: what cannot be read is no message either.
func TestServerWhoseMessagesAreAllLostIsGivenUp_R15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		link, p := newLink(t, transport.LineOptions{})
		done := make(chan dialed, 1)
		go func() {
			conn, err := transport.Dial(t.Context(), lossyLink{link}, transport.DialOptions{Era: mcp.Legacy, MaxNoise: limit})
			done <- dialed{conn, err}
		}()
		p.handshake(mcp.Revision20250618)
		conn := receive(t, "the connection", done).conn
		for range limit {
			p.say("lost")
		}
		synctest.Wait()
		if err := conn.Err(); err != nil {
			t.Errorf("it has ended: %v", err)
		}
		p.say("lost")
		receive(t, "the end", conn.Done())
		if err := conn.Err(); err == nil || !strings.HasSuffix(err.Error(), "the limit MaxNoise is 5") {
			t.Errorf("it has ended by %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

package client_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A framing is how a reply says where it ends.
type framing struct {
	name   string
	events bool
	frame  func(body string) string // the whole reply
	// guesses reports whether a truncated reply is taken for one that is whole,
	// and no answer.
	guesses bool
}

const headOf = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "

var framings = []framing{
	{"JSON with a length", false, func(body string) string {
		return fmt.Sprintf("%sapplication/json\r\nContent-Length: %d\r\n\r\n%s", headOf, len(body), body)
	}, false},
	{"JSON to the end", false, func(body string) string { return headOf + "application/json\r\n\r\n" + body }, true},
	{"JSON in chunks", false, func(body string) string {
		return headOf + "application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body[:20], body[20:], "")
	}, false},
	{"events in chunks", true, func(body string) string {
		return headOf + "text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunked(": hi\n\n", "event: message\ndata: "+body+"\n\n", "")
	}, false},
	{"events to the end", true, func(body string) string {
		return headOf + "text/event-stream\r\n\r\n: hi\n\ndata: " + body + "\n\n"
	}, false},
}

func chunked(pieces ...string) string {
	var b strings.Builder
	for _, piece := range pieces {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
	}
	return b.String()
}

// onWire has a reply written as it is framed. Sizes gets how long it was, and up to
// where its response is whole.
func (f *framing) onWire(sizes chan<- [2]int) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, response string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		reply := f.frame(response)
		whole := len(reply)
		if i := strings.LastIndexByte(reply, '}'); i >= 0 {
			whole = i + 1
		}
		sizes <- [2]int{whole, len(reply)}
		_, _ = io.WriteString(conn, reply)
	}
}

// A reply over HTTP that ends too early is none, wherever that is.
func TestTruncatedRepliesOverHTTP_R3_R13_P1_P2(t *testing.T) {
	for _, f := range framings {
		t.Run(f.name, func(t *testing.T) {
			bothEras(t, func(t *testing.T, era mcp.Era) {
				trouble, step := faulttest.Sever, 1
				if era == mcp.Modern {
					trouble, step = faulttest.Reset, 3 // eras read replies in one way
				}
				truncate(t, &f, era, streamable.DialOptions{}, trouble, step)
				truncate(t, &f, era, streamable.DialOptions{Transport: new(http.Transport)}, trouble, 2*step)
			})
		})
	}
}

// truncate ends the connections of calls after each number of bytes, or each few.
func truncate(t *testing.T, f *framing, era mcp.Era, dial streamable.DialOptions, trouble faulttest.Trouble, step int) {
	sizes := make(chan [2]int, 1)
	s := shakyOf(t, newCounting(t, era, f.onWire(sizes)).closing(), era, dial)
	s.calls = 1000 // so that all names are equally long
	s.works(t)
	size, lost := <-sizes, 0
	for n := 0; n <= size[1]; n += step {
		s.next <- faulttest.Faults{Down: []faulttest.Fault{{Trouble: trouble, At: int64(n), Late: n == 0}}}
		err := s.call(t, soon, 0)
		size = <-sizes // ids grow
		if mcp.OutcomeOf(err) == mcp.MaybeExecuted && err != nil {
			lost++ // and the next fault is not for what tells of that
			eventuallySo(t, "the server is told of the call", func() bool { return s.server.wasTold(lost) })
		}
		if problem := f.judge(err, n, size, trouble); problem != "" {
			t.Errorf("after %d of %d bytes, of which %d hold the response: %s: %v", n, size[1], size[0], problem, err)
		}
		if n%8 == 0 {
			s.works(t)
			<-sizes
		}
	}
}

// judge returns what is wrong with how a call ended whose reply was cut.
func (f *framing) judge(err error, n int, size [2]int, trouble faulttest.Trouble) string {
	kind, known := outcome(err)
	switch {
	case err == nil && n < size[0]:
		return "a part was taken for the whole"
	case err == nil:
		return ""
	case n == size[1] && trouble == faulttest.Sever:
		return "nothing was missing"
	case kind == mcp.ConnectionLost && known == mcp.MaybeExecuted:
		return ""
	case f.guesses && kind == mcp.BadReply && known == mcp.Answered:
		return ""
	}
	return "it ended in another way"
}

// A line of a child that ends too early is none. Between these bytes there are those
// of TestTruncatedStreams.
func TestTruncatedLines_R1_P1_P2(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		t.Parallel() // they wait for processes
		const answer = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"000"}],"_meta":{"size":""}}}`
		const whole = len(answer) // ids have more digits, later
		b := brittleOf(t, era, healsFast(), faulttest.Script{faulttest.Serve()})
		starts := 1
		for _, n := range []int{0, 1, whole / 2, whole - 2, whole - 1, whole, whole + 1} {
			id := fmt.Sprintf("%03d", n)
			got, err := b.order(faulttest.Order{ID: id, Fate: faulttest.Cut, At: n}, soon)
			judgeLine(t, n, whole, got == id, err)
			starts++
			eventuallySo(t, "another child", func() bool { return b.child.Starts() == starts })
			b.works(t)
		}
		b.audit(t)
	})
}

// judgeLine checks how a call ended whose answer, a line of about as many bytes as
// whole, was cut after n bytes.
func judgeLine(t *testing.T, n, whole int, right bool, err error) {
	t.Helper()
	switch kind, known := outcome(err); {
	case err == nil && (n < whole || !right):
		t.Errorf("after %d bytes: it has a result", n)
	case err != nil && (n > whole+1 || kind != mcp.ConnectionLost || known != mcp.MaybeExecuted):
		t.Errorf("after %d bytes: %v", n, err)
	}
}

// A byte stream that ends in the middle of a line holds no answer, wherever that is.
func TestTruncatedStreams_R1_P1_P2(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		synctest.Test(t, func(t *testing.T) {
			const answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"cut"}],"_meta":{"size":""}}}`
			cut, whole := -1, 0
			executed := 0
			w := newWire(t, func(m *jsonrpc.Message) []string {
				if string(m.Method) != mcp.MethodCallTool {
					return greet(m)
				}
				executed++
				return []string{answer}
			})
			w.write = func(conn net.Conn, m *jsonrpc.Message, text string) error {
				if string(m.Method) != mcp.MethodCallTool || cut < 0 {
					_, err := io.WriteString(conn, text)
					return err
				}
				whole = len(text) - 1
				_, _ = io.WriteString(conn, text[:min(cut, len(text))])
				_ = conn.Close()
				return io.EOF
			}
			c := connect(t, w, &client.Options{Era: era, Healing: healsFast().Healing})
			for n := 0; n <= whole+1; n++ {
				cut, executed = n, 0
				got, err := told(t, c)
				judgeLine(t, n, whole, got == "cut", err)
				if executed != 1 {
					t.Errorf("after %d bytes: it was executed %d times", n, executed)
				}
				cut = -1
				synctest.Wait() // until the end of the connection has been seen
				if got, err := told(t, c); got != "cut" || err != nil {
					t.Errorf("the next call returned %q, %v", got, err)
				}
			}
			if whole < 100 {
				t.Errorf("an answer has %d bytes", whole)
			}
		})
	})
}

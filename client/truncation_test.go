package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
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
				trouble := faulttest.Sever
				if era == mcp.Modern {
					trouble = faulttest.Reset // eras read replies in one way
				}
				truncate(t, &f, era, trouble)
			})
		})
	}
}

// truncate ends the connections of calls after each number of bytes.
func truncate(t *testing.T, f *framing, era mcp.Era, trouble faulttest.Trouble) {
	sizes := make(chan [2]int, 1)
	s := shakyOf(t, newCounting(t, era, f.onWire(sizes)), era, streamable.DialOptions{
		Transport: &http.Transport{DisableKeepAlives: true}, // each call has a connection
	})
	s.calls = 1000 // so that all names are equally long
	s.works(t)
	size := <-sizes
	for n := 0; n <= size[1]; n++ {
		s.next <- faulttest.Faults{Down: []faulttest.Fault{{Trouble: trouble, At: int64(n), Late: n == 0}}}
		err := s.call(t, soon, 0)
		size = <-sizes // ids grow
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

// A line of a child that ends too early is none.
func TestTruncatedLines_R1_P1_P2(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		step := 4
		if era == mcp.Modern {
			step = 28 // a line is a line, and each costs a process
		}
		for first := range 4 {
			t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
				t.Parallel() // they wait for processes
				truncateLines(t, era, first, step)
			})
		}
	})
}

// truncateLines has a child die after every so many bytes of its answer.
func truncateLines(t *testing.T, era mcp.Era, first, step int) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"000"}],"_meta":{"size":""}}}`
	const whole = len(answer) // ids have more digits, later
	b := brittleOf(t, era, healsFast(), faulttest.Script{faulttest.Serve()})
	starts := 1
	for n := first; n < whole+2; n += step {
		id := fmt.Sprintf("%03d", n)
		got, err := b.order(faulttest.Order{ID: id, Fate: faulttest.Cut, At: n}, soon)
		switch kind, known := outcome(err); {
		case err == nil && (n < whole || got != id):
			t.Errorf("after %d bytes: got %q", n, got)
		case err != nil && (n > whole+1 || kind != mcp.ConnectionLost || known != mcp.MaybeExecuted):
			t.Errorf("after %d bytes: %v", n, err)
		}
		starts++
		eventuallySo(t, "another child", func() bool { return b.child.Starts() == starts })
		b.works(t)
	}
	b.audit(t)
}

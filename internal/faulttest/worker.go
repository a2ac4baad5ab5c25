package faulttest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// An Order is the arguments of a call of a tool of a child that serves.
type Order struct {
	// ID is what the ledger says, and the text of the result.
	ID string `json:"id"`
	// Wait is how many milliseconds the tool takes, after it was written to the
	// ledger.
	Wait int `json:"wait,omitempty"`
	// Fate is what becomes of the call; none for an answer.
	Fate Fate `json:"fate,omitempty"`
	// At is the number of bytes with the fate Cut.
	At int `json:"at,omitempty"`
	// Stream has a server over HTTP answer with an event stream.
	Stream bool `json:"stream,omitempty"`
	// Size is how many further bytes the result has.
	Size int `json:"size,omitempty"`
}

// A Fate says when the child kills itself, or what else goes wrong.
type Fate string

// The fates. All but the last two kill the child.
const (
	Unread   Fate = "unread"   // before the call is written to the ledger
	Executed Fate = "executed" // after that, before a byte of the answer
	Notified Fate = "notified" // after a notification of progress
	Half     Fate = "half"     // in the middle of the answer
	Cut      Fate = "cut"      // after some bytes of the answer
	Answered Fate = "answered" // after the answer
	Silent   Fate = "silent"   // never: there is no answer
	Twice    Fate = "twice"    // never: the answer is written twice
)

// A worker is a small server.
type worker struct {
	modern bool
	ledger Ledger

	mu sync.Mutex // held while an answer is written
}

// order returns what a call of a tool wants.
func order(m *jsonrpc.Message) (Order, error) {
	var o Order
	arguments, _ := m.Body.Lookup("arguments")
	if len(arguments) == 0 {
		return o, nil
	}
	return o, json.Unmarshal(arguments, &o)
}

// answer returns the answer of a request other than a call that has a fate.
func (w *worker) answer(m *jsonrpc.Message) []byte {
	const info = `"serverInfo":{"name":"faulttest","version":"1"}`
	switch method := string(m.Method); {
	case method == mcp.MethodDiscover && w.modern:
		return result(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},`+info+`}`)
	case method == mcp.MethodInitialize && !w.modern:
		return result(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+info+`}`)
	case method == mcp.MethodDiscover, method == mcp.MethodInitialize:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID.Raw())
	case method == mcp.MethodListTools:
		return result(m, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"work","inputSchema":{"type":"object"}}]}`)
	}
	return result(m, `{"resultType":"complete"}`)
}

func result(m *jsonrpc.Message, text string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID.Raw(), text)
}

// work executes a call and returns its answer.
func (w *worker) work(m *jsonrpc.Message, o *Order) ([]byte, error) {
	if o.Fate == Unread {
		die()
	}
	if err := w.ledger.Record(o.ID); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(o.Wait) * time.Millisecond)
	switch o.Fate {
	case Executed:
		die()
	case Silent:
		hang()
	}
	return result(m, fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}],"_meta":{"size":%q}}`,
		o.ID, strings.Repeat("x", o.Size))), nil
}

// progress returns a notification of the progress of a call, nil if that was not
// asked for.
func progress(m *jsonrpc.Message) []byte {
	token := progressToken(m)
	if token == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token)
}

func progressToken(m *jsonrpc.Message) []byte {
	token, _ := m.Meta.Lookup(mcp.MetaProgressToken)
	return token
}

// serve is the step [Serve].
func (a *actor) serve() error {
	for {
		m, err := a.next()
		if err != nil {
			return err
		}
		switch {
		case m.Kind != jsonrpc.Request:
		case string(m.Method) == mcp.MethodCallTool:
			go a.call(m)
		default:
			a.worker.mu.Lock()
			a.say(a.worker.answer(m))
			a.worker.mu.Unlock()
		}
	}
}

// call obeys a call's order. An error of the ledger ends the child, since nothing
// would be found out any more.
func (a *actor) call(m *jsonrpc.Message) {
	o, err := order(m)
	if err != nil {
		a.say(result(m, `{"isError":true,"content":[]}`))
		return
	}
	line, err := a.worker.work(m, &o)
	if err != nil {
		complain(a.streams[Stderr], err)
		die()
	}
	a.worker.mu.Lock()
	defer a.worker.mu.Unlock()
	deliver(a.streams[Stdout], append(line, '\n'), append(progress(m), '\n'), &o)
}

// deliver writes the answer of a call as its order says.
func deliver(to io.Writer, answer, notification []byte, o *Order) {
	switch o.Fate {
	case Notified:
		_, _ = to.Write(notification)
		die()
	case Half:
		_, _ = to.Write(answer[:len(answer)/2])
		die()
	case Cut:
		_, _ = to.Write(answer[:min(o.At, len(answer))])
		die()
	case Twice:
		answer = bytes.Repeat(answer, 2)
	}
	_, _ = to.Write(answer) // whoever reads may be gone
	if o.Fate == Answered {
		die()
	}
}

// drained closes done when a stream has ended.
func drained(f *os.File) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, f)
	}()
	return done
}

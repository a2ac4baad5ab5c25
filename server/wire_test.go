package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// patience is how long a test waits for a message.
const patience = 10 * time.Second

// A message is one message of a server.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}

	raw    []byte
	status int // of HTTP; 0 elsewhere
}

// A line carries messages to a server and back.
type line interface {
	// post sends a message; what comes back is given to the peer.
	post(raw []byte)
	// abandon lets a request go, as a client does that wants no answer.
	abandon(id int)
}

// A peer is a client of a server, of one revision over one transport. It checks
// each message that comes against the specification's schema, and answers
// questions.
type peer struct {
	t        *testing.T
	revision mcp.Revision
	spec     *spec
	line     line
	logLevel string // of modern requests
	declared string // capabilities

	initialized message // the answer to initialize

	notes chan message

	mu      sync.Mutex
	last    int
	methods map[string]string       // of requests by id
	waiting map[string]chan message // by id
	answers map[string]string       // results by method of the question; nil for those by default
	asked   []message
}

// defaultAnswers are what a user, a model and a client say.
var defaultAnswers = map[string]string{
	mcp.MethodElicit:        `{"action":"accept","content":{"name":"Ada","age":36}}`,
	mcp.MethodCreateMessage: `{"role":"assistant","content":{"type":"text","text":"Hello."},"model":"m"}`,
	mcp.MethodListRoots:     `{"roots":[{"uri":"file:///home","name":"home"}]}`,
}

const everyCapability = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}`

// dial connects a client to a server and makes the handshake of its revision.
func dial(t *testing.T, s *server.Server, revision mcp.Revision, transport, capabilities string) *peer {
	t.Helper()
	all, err := specs()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{
		t: t, revision: revision, spec: all[revision], declared: capabilities,
		notes: make(chan message, 1000), methods: make(map[string]string), waiting: make(map[string]chan message),
	}
	if transport == "http" {
		p.line = newHTTPLine(p, s)
	} else {
		p.line = newStdioLine(p, s)
	}
	if revision.Era() == mcp.Modern {
		return p
	}
	m := p.request(mcp.MethodInitialize, `{"protocolVersion":"`+string(revision)+`","capabilities":`+capabilities+`,"clientInfo":{"name":"c","version":"1"}}`)
	if m.Error != nil {
		t.Fatalf("the handshake failed: %s", m.raw)
	}
	p.initialized = m
	p.notify(mcp.NotificationInitialized, "")
	if h, ok := p.line.(*httpLine); ok {
		h.openStream()
	}
	return p
}

// send sends a request and returns its id and where its response comes.
func (p *peer) send(method, params string) (int, chan message) {
	p.t.Helper()
	p.mu.Lock()
	p.last++
	id := p.last
	response := make(chan message, 1)
	p.methods[fmt.Sprint(id)] = method
	p.waiting[fmt.Sprint(id)] = response
	p.mu.Unlock()
	p.line.post(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, p.withMeta(params)))
	return id, response
}

// withMeta returns params with what a modern client says of itself.
func (p *peer) withMeta(params string) string {
	if p.revision.Era() != mcp.Modern {
		return params
	}
	var members, meta map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &members); err != nil {
		p.t.Fatalf("%s: %v", params, err)
	}
	if err := json.Unmarshal(members["_meta"], &meta); err != nil {
		meta = make(map[string]json.RawMessage)
	}
	meta[mcp.MetaProtocolVersion] = json.RawMessage(`"` + p.revision + `"`)
	meta[mcp.MetaClientCapabilities] = json.RawMessage(p.declared)
	meta[mcp.MetaClientInfo] = json.RawMessage(`{"name":"c","version":"1"}`)
	if p.logLevel != "" {
		meta[mcp.MetaLogLevel] = json.RawMessage(`"` + p.logLevel + `"`)
	}
	members["_meta"] = encode(p.t, meta)
	return string(encode(p.t, members))
}

func encode(t interface{ Fatal(...any) }, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// request makes a request and returns the response.
func (p *peer) request(method, params string) message {
	p.t.Helper()
	_, response := p.send(method, params)
	return p.wait(method, response)
}

func (p *peer) wait(what string, response chan message) message {
	p.t.Helper()
	select {
	case m := <-response:
		return m
	case <-time.After(patience):
		p.t.Fatalf("no answer to %s came", what)
		return message{}
	}
}

// result makes a request as a client does that answers what the server asks, and
// returns the result.
func (p *peer) result(method, params string) string {
	p.t.Helper()
	m := p.complete(method, params)
	if m.Error != nil {
		p.t.Fatalf("%s %s: %s", method, params, m.raw)
	}
	return string(m.Result)
}

func (p *peer) complete(method, params string) message {
	p.t.Helper()
	for range 10 {
		m := p.request(method, params)
		var need struct {
			ResultType    string
			InputRequests map[string]message
			RequestState  json.RawMessage
		}
		if m.Error != nil || json.Unmarshal(m.Result, &need) != nil || need.ResultType != mcp.InputRequired {
			return m
		}
		responses := make(map[string]json.RawMessage)
		for key, question := range need.InputRequests {
			responses[key] = json.RawMessage(p.answer(question))
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(params), &members); err != nil {
			p.t.Fatal(err)
		}
		members["inputResponses"], members["requestState"] = encode(p.t, responses), need.RequestState
		if need.RequestState == nil {
			delete(members, "requestState")
		}
		params = string(encode(p.t, members))
	}
	p.t.Fatalf("%s needs input without end", method)
	return message{}
}

// answer notes a question and returns the result that answers it.
func (p *peer) answer(question message) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, question)
	if answer, ok := p.answers[question.Method]; ok {
		return answer
	}
	return defaultAnswers[question.Method]
}

func (p *peer) questions() []message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *peer) notify(method, params string) {
	if params != "" {
		params = `,"params":` + params
	}
	p.line.post([]byte(`{"jsonrpc":"2.0","method":"` + method + `"` + params + `}`))
}

// next returns the next notification of a method.
func (p *peer) next(method string) message {
	p.t.Helper()
	for {
		select {
		case m := <-p.notes:
			if m.Method == method {
				return m
			}
		case <-time.After(patience):
			p.t.Fatalf("no %s came", method)
		}
	}
}

// take takes a message of the server, or a batch.
func (p *peer) take(raw []byte, status int) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return
	}
	if raw[0] == '[' {
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil || p.revision != mcp.Revision20250326 {
			p.t.Errorf("the server sent the batch %s (%v)", raw, err)
		}
		for _, item := range items {
			p.take(item, status)
		}
		return
	}
	m := message{raw: raw, status: status}
	if err := json.Unmarshal(raw, &m); err != nil {
		p.t.Errorf("the server sent %s: %v", raw, err)
		return
	}
	p.mu.Lock()
	method, response := p.methods[string(m.ID)], p.waiting[string(m.ID)]
	p.mu.Unlock()
	if err := p.spec.message(raw, method); err != nil {
		p.t.Errorf("the server sent what %s does not have:\n%s\n%v", p.revision, raw, err)
	}
	switch {
	case m.Method != "" && m.ID == nil:
		p.notes <- m
	case m.Method != "":
		p.line.post([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + p.answer(m) + `}`))
	case response == nil:
		p.t.Errorf("the server answers what was not asked: %s", raw)
	default:
		response <- m
	}
}

// A stdioLine is a byte stream framed by lines.
type stdioLine struct {
	p    *peer
	conn net.Conn
	mu   sync.Mutex // orders what is written
}

func newStdioLine(p *peer, s *server.Server) *stdioLine {
	ours, theirs := net.Pipe()
	link := transport.NewLineLink(theirs, theirs, theirs.Close, transport.LineOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	l := &stdioLine{p: p, conn: ours}
	var running sync.WaitGroup
	running.Go(func() {
		if err := transport.Serve(ctx, link, s, transport.ServeOptions{Drain: time.Second}); err != nil {
			p.t.Errorf("serving ended with %v", err)
		}
	})
	running.Go(func() {
		lines := bufio.NewReader(ours)
		for {
			raw, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			l.p.take(raw, 0)
		}
	})
	p.t.Cleanup(func() {
		ours.Close()
		running.Wait()
		cancel()
	})
	return l
}

func (l *stdioLine) post(raw []byte) {
	go func() { // beside whoever takes what comes meanwhile
		l.mu.Lock()
		defer l.mu.Unlock()
		_, _ = l.conn.Write(append(raw, '\n')) // an answer that does not come is noticed
	}()
}

func (l *stdioLine) abandon(id int) {
	l.post(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
}

// An httpLine is an HTTP endpoint.
type httpLine struct {
	p       *peer
	url     string
	client  *http.Client
	ctx     context.Context
	running *sync.WaitGroup

	mu      sync.Mutex
	session string
	cancels map[int]context.CancelFunc
}

func newHTTPLine(p *peer, s *server.Server) *httpLine {
	h := streamable.NewHandler(s, nil)
	listener := httptest.NewServer(h)
	ctx, cancel := context.WithCancel(context.Background())
	l := &httpLine{p: p, url: listener.URL, client: listener.Client(), ctx: ctx, running: new(sync.WaitGroup), cancels: make(map[int]context.CancelFunc)}
	p.t.Cleanup(func() {
		cancel()
		h.Close()
		l.running.Wait()
		listener.Close()
	})
	return l
}

func (l *httpLine) request(ctx context.Context, method string, body []byte) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, l.url, bytes.NewReader(body))
	if err != nil {
		l.p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != "" {
		r.Header.Set("Mcp-Session-Id", l.session)
	}
	if l.session != "" && l.p.revision.HasVersionHeader() || l.p.revision.Era() == mcp.Modern {
		r.Header.Set("MCP-Protocol-Version", string(l.p.revision))
	}
	return r
}

func (l *httpLine) post(raw []byte) {
	ctx, cancel := context.WithCancel(l.ctx)
	r := l.request(ctx, http.MethodPost, raw)
	var m struct {
		ID     int
		Method string
		Params struct{ Name, URI string }
	}
	_ = json.Unmarshal(raw, &m) // a batch has no such members
	if l.p.revision.Era() == mcp.Modern {
		r.Header.Set("Mcp-Method", m.Method)
		if name, has := mcp.NameParam(m.Method); has {
			r.Header.Set("Mcp-Name", mcp.EncodeHeader(map[string]string{"name": m.Params.Name, "uri": m.Params.URI}[name]))
		}
	}
	l.mu.Lock()
	l.cancels[m.ID] = cancel
	l.mu.Unlock()
	done := make(chan struct{})
	l.running.Go(func() {
		defer cancel()
		defer close(done)
		l.exchange(r, make(chan struct{}))
	})
	// The order of notifications is that of their posts.
	if m.Method != "" && m.ID == 0 || m.Method == mcp.MethodInitialize {
		<-done
	}
}

func (l *httpLine) abandon(id int) {
	if l.p.revision.Era() != mcp.Modern {
		l.post(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancels[id]()
}

// exchange makes a request and takes what comes back. It closes begun when that
// begins.
func (l *httpLine) exchange(r *http.Request, begun chan<- struct{}) {
	response, err := l.client.Do(r)
	close(begun)
	if err != nil {
		if r.Context().Err() == nil {
			l.p.t.Error(err)
		}
		return
	}
	defer response.Body.Close()
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		l.mu.Lock()
		l.session = id
		l.mu.Unlock()
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		events := bufio.NewScanner(response.Body)
		events.Buffer(nil, 1<<24)
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data:"); ok {
				l.p.take([]byte(strings.TrimSpace(data)), response.StatusCode)
			}
		}
		return
	}
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusAccepted {
		l.p.take(body, response.StatusCode)
	}
}

// openStream opens the stream for what belongs to no request.
func (l *httpLine) openStream() {
	ctx, cancel := context.WithCancel(l.ctx)
	r := l.request(ctx, http.MethodGet, nil)
	r.Header.Set("Accept", "text/event-stream")
	begun := make(chan struct{})
	l.running.Go(func() {
		defer cancel()
		l.exchange(r, begun)
	})
	// One that came when the test is over would be refused.
	<-begun
}

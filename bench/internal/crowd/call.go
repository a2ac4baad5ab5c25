package crowd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// patience is how long an answer may take before it counts as lost.
const patience = 90 * time.Second

// A call is one call of a member.
type call struct {
	member      *member
	key         string
	id          string // as JSON
	arguments   Arguments
	cancelAfter time.Duration // 0 for a call that goes on

	responses int
	result    message // the last response
}

// A message is one of the server's.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Message string `json:"message"`
	} `json:"params"`
	Result struct {
		ResultType string `json:"resultType"`
		Content    []struct {
			Text string `json:"text"`
		} `json:"content"`
		RequestState  json.RawMessage `json:"requestState"`
		InputRequests map[string]struct {
			Params struct {
				Message string `json:"message"`
			} `json:"params"`
		} `json:"inputRequests"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

const capabilities = `{"elicitation":{}}`

// meta is the member _meta of a modern client's params, with the comma after it.
func (m *member) meta() string {
	if m.revision == wire.Legacy {
		return ""
	}
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"crowd","version":"%d"},`+
		`"io.modelcontextprotocol/clientCapabilities":%s},`, m.revision, m.number, capabilities)
}

// open makes a legacy client's handshake.
func (m *member) open(ctx context.Context) error {
	if m.revision == wire.Modern {
		return nil
	}
	resp, err := m.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,`+
		`"clientInfo":{"name":"crowd","version":"%d"}}}`, m.revision, capabilities, m.number), "initialize", "")
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if m.session = resp.Header.Get("Mcp-Session-Id"); err != nil || m.session == "" {
		return fmt.Errorf("initialize is answered with %d %s %w", resp.StatusCode, body, err)
	}
	return m.tell(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// tell posts what has no response.
func (m *member) tell(ctx context.Context, text string) error {
	resp, err := m.post(ctx, text, "", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusAccepted {
		return errors.Join(err, fmt.Errorf("%s is answered with %d", text, resp.StatusCode))
	}
	return err
}

func (m *member) post(ctx context.Context, text, method, name string) (*http.Response, error) {
	return m.postBy(ctx, m.http, text, method, name)
}

func (m *member) postBy(ctx context.Context, client *http.Client, text, method, name string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.crowd.Addr+wire.Path, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("MCP-Protocol-Version", string(m.revision))
	if m.session != "" {
		h.Set("Mcp-Session-Id", m.session)
	}
	if m.revision == wire.Modern {
		h.Set("Mcp-Method", method)
		h.Set("Mcp-Name", name)
	}
	return client.Do(req)
}

// make makes the call, and again with the answers to what it is asked.
func (c *call) make(ctx context.Context) {
	f := &c.member.crowd.counts
	extra := ""
	for round := 0; ; round++ {
		err := c.send(ctx, extra)
		switch {
		case ctx.Err() != nil:
			return // the whole run ends
		case c.responses > 1:
			f.bad(&f.figures.Doubled, "%s has %d answers", c.key, c.responses)
			return
		case c.cancelAfter > 0 && (c.responses == 0 || c.result.Error != nil):
			f.cancelled.Add(1)
			return
		case c.responses == 0:
			f.bad(&f.figures.Lost, "%s has no answer: %v", c.key, err)
			return
		case c.result.Result.ResultType != "input_required" || round == 3:
			c.judge()
			return
		}
		extra = c.answers()
		// An id of its own for each request.
		c.id = fmt.Sprintf(`"%s again %d"`, strings.Trim(c.id, `"`), round)
		c.responses = 0
	}
}

// judge looks at the answer.
func (c *call) judge() {
	f := &c.member.crowd.counts
	text := ""
	if len(c.result.Result.Content) == 1 {
		text = c.result.Result.Content[0].Text
	}
	switch {
	case text == c.key && !c.arguments.Ask, text == c.key+" accept":
		f.answered.Add(1)
	case (text == c.key+Refused || text == c.key+" cancel") && (!c.member.crowd.MustAsk || c.cancelAfter > 0):
		f.answered.Add(1)
		f.refused.Add(1)
	case strings.HasPrefix(text, "client ") && !strings.HasPrefix(text, c.key+" "):
		f.bad(&f.figures.Crossed, "%s is answered with %q", c.key, text)
	default:
		f.bad(&f.figures.Wrong, "%s is answered with %q %+v", c.key, text, c.result.Error)
	}
}

// answers returns the members of the params that answer all that is asked.
func (c *call) answers() string {
	responses := make(map[string]json.RawMessage)
	for key, question := range c.result.Result.InputRequests {
		responses[key] = c.answer(question.Params.Message)
	}
	text, err := json.Marshal(responses)
	if err != nil {
		panic(err) // invariant: maps of JSON are JSON
	}
	return fmt.Sprintf(`"inputResponses":%s,"requestState":%s,`, text, c.result.Result.RequestState)
}

// answer answers a question, which names its call: one of this client, although it may
// have come with another of its calls.
func (c *call) answer(key string) json.RawMessage {
	f := &c.member.crowd.counts
	f.asked.Add(1)
	if !strings.HasPrefix(key, fmt.Sprintf("client %d ", c.member.number)) {
		f.bad(&f.figures.Crossed, "%s is asked what is for %q", c.key, key)
	}
	return fmt.Appendf(nil, `{"action":"accept","content":{"name":%q}}`, key)
}

// send makes one request and reads its reply.
func (c *call) send(ctx context.Context, extra string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	arguments, err := json.Marshal(c.arguments)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{%s%s"name":%q,"arguments":%s}}`,
		c.id, c.member.meta(), extra, ToolName, arguments)
	if c.cancelAfter > 0 {
		stop := time.AfterFunc(c.cancelAfter, func() { c.cancel(ctx, cancel) })
		defer stop.Stop()
	}
	client := c.member.http
	if c.cancelAfter > 0 {
		client = c.member.leaving
	}
	resp, err := c.member.postBy(ctx, client, text, "tools/call", ToolName)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		return c.take(ctx, body)
	}
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if err := c.take(ctx, data); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// cancel cancels the call as its revision wants it.
func (c *call) cancel(ctx context.Context, hangUp context.CancelFunc) {
	if c.member.revision == wire.Modern {
		hangUp()
		return
	}
	text := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, c.id)
	if err := c.member.tell(context.WithoutCancel(ctx), text); err != nil {
		f := &c.member.crowd.counts
		f.bad(&f.figures.Wrong, "%s: %v", c.key, err)
	}
}

// take takes one message of the reply.
func (c *call) take(ctx context.Context, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil // an event that only has an id
	}
	f := &c.member.crowd.counts
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		f.bad(&f.figures.Wrong, "%s gets %.200q: %v", c.key, data, err)
		return err
	}
	switch {
	case m.Method != "" && m.ID != nil:
		return c.member.tell(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, c.answer(m.Params.Message)))
	case m.Method != "":
	case string(m.ID) != c.id:
		f.bad(&f.figures.Crossed, "%s with the id %s gets %.200s", c.key, c.id, data)
	default:
		c.responses++
		c.result = m
	}
	return nil
}

// Tally asks a server what it has executed.
func (c *Crowd) Tally(ctx context.Context) (Tally, error) {
	var t Tally
	m := newMember(c, 0)
	defer m.http.CloseIdleConnections()
	if err := m.open(ctx); err != nil {
		return t, err
	}
	resp, err := m.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, TallyName), "", "")
	if err != nil {
		return t, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return t, err
	}
	var reply message
	if err := json.Unmarshal(body, &reply); err != nil || len(reply.Result.Content) != 1 {
		return t, fmt.Errorf("the tally is %.300s: %w", body, err)
	}
	return t, json.Unmarshal([]byte(reply.Result.Content[0].Text), &t)
}

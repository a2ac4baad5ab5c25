// Package wire holds the bytes that the benchmarks send: requests of both
// protocol families, built once, with the id in a place that can be patched.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A Revision is a protocol revision that contestants are measured in.
type Revision string

// The two revisions measured: the last legacy one and the first modern one.
const (
	Legacy Revision = "2025-11-25"
	Modern Revision = "2026-07-28"
)

// ParseRevision returns the revision named s.
func ParseRevision(s string) (Revision, error) {
	switch r := Revision(s); r {
	case Legacy, Modern:
		return r, nil
	}
	return "", fmt.Errorf("unknown revision %q, want %s or %s", s, Legacy, Modern)
}

// Ids have ten digits from the first to the last, so that every request of a
// kind has the same length and its id can be patched in place.
const (
	FirstID  = 1_000_000_000
	IDDigits = 10
)

// ToolName is the tool that every contestant offers: it gives its argument
// "text" back as a text block.
const ToolName = "echo"

// Path is where every contestant serves over HTTP.
const Path = "/mcp"

// A Message is one JSON-RPC message, or a whole HTTP request with one, whose
// id can be patched. It is not safe for concurrent use.
type Message struct {
	Bytes []byte
	idAt  int
}

// SetID writes id, which has ten digits, into the message.
func (m *Message) SetID(id int64) { PutID(m.Bytes[m.idAt:], id) }

// PutID writes id, which has ten digits, to the beginning of b.
func PutID(b []byte, id int64) {
	for i := IDDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + id%10)
		id /= 10
	}
}

// Clone returns a copy that shares no bytes with m.
func (m *Message) Clone() *Message {
	return &Message{Bytes: bytes.Clone(m.Bytes), idAt: m.idAt}
}

// Line returns the message as one line of the stdio framing.
func (m *Message) Line() *Message {
	return &Message{Bytes: append(bytes.Clone(m.Bytes), '\n'), idAt: m.idAt}
}

// An Endpoint is what an HTTP request needs beside its message.
type Endpoint struct {
	Addr     string
	Revision Revision
	Session  string // Mcp-Session-Id, empty for none
}

// HTTP returns a whole HTTP request with the message, which calls method; name
// is the tool of a tools/call.
func (m *Message) HTTP(e Endpoint, method, name string) *Message {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", Path, e.Addr)
	b.WriteString("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n")
	if method != "initialize" {
		fmt.Fprintf(&b, "MCP-Protocol-Version: %s\r\n", e.Revision)
	}
	if e.Revision == Modern {
		fmt.Fprintf(&b, "Mcp-Method: %s\r\n", method)
		if name != "" {
			fmt.Fprintf(&b, "Mcp-Name: %s\r\n", name)
		}
	}
	if e.Session != "" {
		fmt.Fprintf(&b, "Mcp-Session-Id: %s\r\n", e.Session)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(m.Bytes))
	idAt := b.Len() + m.idAt
	b.Write(m.Bytes)
	return &Message{Bytes: b.Bytes(), idAt: idAt}
}

const clientInfo = `{"name":"bench","version":"1.0.0"}`

const modernMeta = `"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"` + string(Modern) + `",` +
	`"io.modelcontextprotocol/clientInfo":` + clientInfo + `,` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

// IDPrefix is what every request begins with: its id follows.
const IDPrefix = `{"jsonrpc":"2.0","id":`

// request builds a request; members are those of its params, without braces.
func request(r Revision, method, members string) *Message {
	if r == Modern {
		if members != "" {
			members = "," + members
		}
		members = modernMeta + members
	}
	return &Message{
		Bytes: []byte(IDPrefix + strconv.Itoa(FirstID) + `,"method":"` + method + `","params":{` + members + `}}`),
		idAt:  len(IDPrefix),
	}
}

// Greeting is the request that opens a conversation: initialize or
// server/discover. It returns its method too.
func Greeting(r Revision) (*Message, string) {
	if r == Modern {
		return request(r, "server/discover", ""), "server/discover"
	}
	members := `"protocolVersion":"` + string(r) + `","capabilities":{},"clientInfo":` + clientInfo
	return request(r, "initialize", members), "initialize"
}

// Initialized is the notification that ends a legacy handshake.
func Initialized() *Message {
	return &Message{Bytes: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}
}

// ListTools is a tools/list request.
func ListTools(r Revision) *Message { return request(r, "tools/list", "") }

// CallTool is a tools/call request with the given text argument.
func CallTool(r Revision, text string) *Message {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // invariant: a string always marshals
	}
	return request(r, "tools/call", `"name":"`+ToolName+`","arguments":{"text":`+string(quoted)+`}`)
}

// ChangeName is the tool that contestants with subscriptions offer: it says of
// each resource once that it has changed.
const ChangeName = "change"

// CallChange is a tools/call request of that tool.
func CallChange(r Revision) *Message {
	return request(r, "tools/call", `"name":"`+ChangeName+`","arguments":{}`)
}

// ResourceCount is how many resources such contestants have.
const ResourceCount = 100

// resourcePrefix is what the URI of every resource begins with.
const resourcePrefix = "bench://resource/"

// Resources returns the URIs of the first n resources.
func Resources(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = resourcePrefix + strconv.Itoa(i)
	}
	return list
}

// Listen is a subscriptions/listen request for resources.
func Listen(uris []string) *Message {
	quoted, err := json.Marshal(uris)
	if err != nil {
		panic(err) // invariant: strings always marshal
	}
	return request(Modern, "subscriptions/listen", `"notifications":{"resourceSubscriptions":`+string(quoted)+`}`)
}

// Updated returns which resource a notification says has changed; ok is false if
// the message is another one.
func Updated(message []byte) (resource int, ok bool) {
	if !bytes.Contains(message, []byte(`"notifications/resources/updated"`)) {
		return 0, false
	}
	_, rest, _ := bytes.Cut(message, []byte(`"uri":"`+resourcePrefix))
	digits, _, ok := bytes.Cut(rest, []byte(`"`))
	resource, err := strconv.Atoi(string(digits))
	return resource, ok && err == nil
}

// IsAcknowledged reports whether a message is the beginning of a subscription.
func IsAcknowledged(message []byte) bool {
	return bytes.Contains(message, []byte(`"notifications/subscriptions/acknowledged"`))
}

// The sentence has what real text has: letters, spaces, quotes, a line break,
// letters beyond ASCII. Three escapes in 86 bytes.
const sentence = "The quick brown fox \"jumps\" over the lazy dog, naïve café, and runs on for a while.\n"

// Text returns size bytes of text.
func Text(size int) string {
	s := strings.Repeat(sentence, size/len(sentence)+1)[:size]
	// A letter beyond ASCII cut in half is replaced by the same number of bytes.
	return strings.ToValidUTF8(s, ".")
}

// CheckCall reports whether reply is the result of a tools/call with id that
// gives text back.
func CheckCall(reply []byte, id int64, r Revision, text string) error {
	var m struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      int64           `json:"id"`
		Error   json.RawMessage `json:"error"`
		Result  struct {
			ResultType string `json:"resultType"`
			IsError    bool   `json:"isError"`
			Content    []struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	if err := json.Unmarshal(reply, &m); err != nil {
		return fmt.Errorf("decoding %s: %w", Excerpt(reply), err)
	}
	c := m.Result.Content
	switch {
	case m.JSONRPC != "2.0" || m.ID != id:
		return fmt.Errorf("want id %d, got %s", id, Excerpt(reply))
	case m.Error != nil || m.Result.IsError:
		return fmt.Errorf("an error: %s", Excerpt(reply))
	case len(c) != 1 || c[0].Type != "text" || c[0].Text != text:
		return fmt.Errorf("not the text that was sent: %s", Excerpt(reply))
	case r == Modern && m.Result.ResultType != "complete":
		return fmt.Errorf("want resultType complete: %s", Excerpt(reply))
	}
	return nil
}

// CheckGreeting reports whether reply answers the greeting with id and offers
// the revision.
func CheckGreeting(reply []byte, id int64, r Revision) error {
	var m struct {
		ID     int64 `json:"id"`
		Result struct {
			ProtocolVersion   string   `json:"protocolVersion"`
			SupportedVersions []string `json:"supportedVersions"`
		} `json:"result"`
	}
	if err := json.Unmarshal(reply, &m); err != nil {
		return fmt.Errorf("decoding %s: %w", Excerpt(reply), err)
	}
	offered := m.Result.SupportedVersions
	if r == Legacy {
		offered = []string{m.Result.ProtocolVersion}
	}
	for _, v := range offered {
		if m.ID == id && v == string(r) {
			return nil
		}
	}
	return fmt.Errorf("revision %s is not offered: %s", r, Excerpt(reply))
}

// CheckList reports whether reply answers the tools/list with id and has the
// tool.
func CheckList(reply []byte, id int64) error {
	var m struct {
		ID     int64 `json:"id"`
		Result struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(reply, &m); err != nil {
		return fmt.Errorf("decoding %s: %w", Excerpt(reply), err)
	}
	for _, t := range m.Result.Tools {
		if m.ID == id && t.Name == ToolName {
			return nil
		}
	}
	return fmt.Errorf("tool %q is not listed: %s", ToolName, Excerpt(reply))
}

// Excerpt returns the beginning of b for an error text.
func Excerpt(b []byte) string {
	const most = 200
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return strconv.Quote(string(b))
}

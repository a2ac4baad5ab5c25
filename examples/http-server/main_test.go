package main

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"

	json "github.com/go-json-experiment/json"
)

// TestMain lets the test binary be the example as well.
func TestMain(m *testing.M) { exampletest.Main(m, main) }

// event returns the data of the next event of a stream that has some.
func event(t *testing.T, stream *bufio.Reader) string {
	t.Helper()
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
			return strings.TrimSpace(data)
		}
	}
}

const question = `"method":"elicitation/create","params":{"message":"Whom is the table for 2 for?","requestedSchema":{"type":"object","properties":{`

func TestLegacyClientIsSentTheQuestion(t *testing.T) {
	url := exampletest.Listen(t)
	res := exampletest.Post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	if got := exampletest.Body(t, res); !strings.Contains(got, `"serverInfo":{"name":"restaurant"`) || session[1] == "" {
		t.Fatalf("initialize is answered with %s, session %q", got, session[1])
	}
	if res := exampletest.Post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...); res.StatusCode != http.StatusAccepted {
		t.Errorf("status %d", res.StatusCode)
	}
	call := exampletest.Post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"reserve","arguments":{"people":2}}}`, session...)
	stream := bufio.NewReader(call.Body)
	if got := event(t, stream); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,`+question) {
		t.Fatalf("the first message is %s", got)
	}
	answer := exampletest.Post(t, url, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}`, session...)
	if answer.StatusCode != http.StatusAccepted {
		t.Errorf("the answer gets the status %d", answer.StatusCode)
	}
	if got := event(t, stream); got != `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"A table for 2 is reserved for Ada."}]}}` {
		t.Errorf("the call is answered with %s", got)
	}
}

// modernCall makes a call of a modern client, with further params.
func modernCall(t *testing.T, url, params string) string {
	t.Helper()
	return exampletest.Body(t, exampletest.Post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"reserve","arguments":{"people":2},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`+params+`}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "reserve"))
}

func TestModernClientComesBackWithTheAnswer(t *testing.T) {
	url := exampletest.Listen(t)
	first := modernCall(t, url, "")
	var needs struct {
		Result struct {
			ResultType    string         `json:"resultType"`
			InputRequests map[string]any `json:"inputRequests"`
			RequestState  string         `json:"requestState"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(first), &needs); err != nil || needs.Result.ResultType != "input_required" ||
		len(needs.Result.InputRequests) != 1 || !strings.Contains(first, question) {
		t.Fatalf("the call is answered with %s, %v", first, err)
	}
	for key := range needs.Result.InputRequests {
		got := modernCall(t, url, `,"requestState":"`+needs.Result.RequestState+`","inputResponses":{"`+key+`":{"action":"accept","content":{"name":"Ada"}}}`)
		if !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"text":"A table for 2 is reserved for Ada."`) {
			t.Errorf("the retry is answered with %s", got)
		}
	}
}

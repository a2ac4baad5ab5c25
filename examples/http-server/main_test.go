package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	json "github.com/go-json-experiment/json"
)

// TestMain lets the test binary be the example as well.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_EXAMPLE") != "" {
		main()
		return
	}
	m.Run()
}

// start starts the example at a free port and returns its address. At the end of
// the test it is told to end, and must do so well.
func start(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "BE_THE_EXAMPLE=1", "GORACE=atexit_sleep_ms=0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		defer late.Stop()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(stderr)
		if err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("at SIGTERM the example ends with %v\n%s", err, rest)
		}
	})
	first, err := bufio.NewReader(stderr).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(first), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the example says %q, %v", first, err)
	}
	return url
}

// post sends a message and returns the reply, of which the caller reads the body.
func post(t *testing.T, url, message string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

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
	url := start(t)
	res := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	if got := body(t, res); !strings.Contains(got, `"serverInfo":{"name":"restaurant"`) || session[1] == "" {
		t.Fatalf("initialize is answered with %s, session %q", got, session[1])
	}
	if res := post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...); res.StatusCode != http.StatusAccepted {
		t.Errorf("status %d", res.StatusCode)
	}
	call := post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"reserve","arguments":{"people":2}}}`, session...)
	stream := bufio.NewReader(call.Body)
	if got := event(t, stream); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,`+question) {
		t.Fatalf("the first message is %s", got)
	}
	answer := post(t, url, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}`, session...)
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
	return body(t, post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"reserve","arguments":{"people":2},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`+params+`}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "reserve"))
}

func TestModernClientComesBackWithTheAnswer(t *testing.T) {
	url := start(t)
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

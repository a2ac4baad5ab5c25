package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// A toldFailure is the error of a command as scripts read it.
type toldFailure struct {
	Kind    string       `json:"kind"`
	Message string       `json:"message"`
	Cause   string       `json:"cause"`
	Hint    string       `json:"hint"`
	Code    cli.ExitCode `json:"code"`
}

// fails runs a command that must fail, and returns what it says.
func fails(t *testing.T, args ...string) toldFailure {
	t.Helper()
	var stderr bytes.Buffer
	code := cli.Main(t.Context(), append([]string{args[0], "--json"}, args[1:]...), cli.Streams{Out: os.Stdout, Err: &stderr})
	var told struct {
		Error toldFailure `json:"error"`
	}
	if err := json.Unmarshal(stderr.Bytes(), &told); err != nil || told.Error.Code != code || code == cli.ExitOK {
		t.Fatalf("it ended with %d and said %q: %v", code, stderr.String(), err)
	}
	return told.Error
}

// jargon is what nobody needs to know who uses the program.
var jargon = []string{"server/discover", "initialize", "bad reply", "not sent", "maybe executed", "dial tcp", "-32"}

// wantSaid checks what is said of a failure. Want are what the message and the hint hold.
func wantSaid(t *testing.T, got toldFailure, code cli.ExitCode, message, hint string) {
	t.Helper()
	if got.Code != code || got.Kind != code.String() {
		t.Errorf("it ended with %d (%s), want %d", got.Code, got.Kind, code)
	}
	if !strings.Contains(got.Message, message) || !strings.Contains(got.Hint, hint) || (hint == "") != (got.Hint == "") {
		t.Errorf("it said\n  %s\n  %s\nwant\n  %s\n  %s", got.Message, got.Hint, message, hint)
	}
	if got.Cause == "" {
		t.Error("the exact cause is not told")
	}
	for _, word := range jargon {
		if strings.Contains(got.Message+got.Hint, word) {
			t.Errorf("it said %q, and %q: what is %q?", got.Message, got.Hint, word)
		}
	}
}

// replies starts a web server that gives every request one answer.
func replies(t *testing.T, status int, contentType, body string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // whoever has gone need not read it
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// speaks starts a server that says one thing to whoever connects.
func speaks(t *testing.T, text string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_, _ = io.WriteString(conn, text) // as above
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

const page = "<!doctype html><title>Hi</title>"

func TestWebServersThatAreNoMCPServers(t *testing.T) {
	for _, tt := range []struct {
		name              string
		status            int
		contentType, body string
		path              string
		code              cli.ExitCode
		message, hint     string
	}{
		{"a web page", 200, "text/html", page, "/", 7, "is a web page, not an MCP server (HTTP 200 OK)", "did you mean http://127.0.0.1:"},
		{"text", 200, "text/plain", "hello", "/x", 7, "is not MCP (HTTP 200 OK)", "often /mcp"},
		{"other JSON", 200, "application/json", `{"hello":1}`, "/x", 7, "is not MCP", "often /mcp"},
		{"nothing", 200, "text/plain", "", "/x", 7, "is not MCP", "often /mcp"},
		{"400", 400, "text/html", page, "/x", 7, "is a web page", "often /mcp"},
		{"400 of a server", 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No session"}}`, "/mcp",
			7, `answers, and refuses to begin: "No session"`, ""},
		{"401", 401, "text/html", page, "/mcp", 3, "wants authorization (HTTP 401 Unauthorized)", "give a token with -H"},
		{"403", 403, "text/html", page, "/mcp", 3, "refuses access (HTTP 403 Forbidden)", "if it wants a token"},
		{"404", 404, "text/html", page, "", 7, "there is nothing at http://127.0.0.1:", "did you mean http://127.0.0.1:"},
		{"404 at another path", 404, "text/html", page, "/x", 7, "(HTTP 404 Not Found)", "that of an endpoint is often /mcp"},
		{"404 at the usual path", 404, "text/html", page, "/api/mcp", 7, "(HTTP 404 Not Found)", "the documentation of the server"},
		{"405", 405, "text/html", page, "/x", 7, "takes no messages of MCP (HTTP 405 Method Not Allowed)", "often /mcp"},
		{"429", 429, "text/html", page, "/x", 4, "has had too many requests", ""},
		{"500", 500, "text/html", page, "/x", 4, "is in trouble (HTTP 500 Internal Server Error)", "try again later"},
		{"a redirect", 302, "text/html", page, "/x", 7, "use that address", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := replies(t, tt.status, tt.contentType, tt.body)
			for _, command := range []string{"ls", "probe"} {
				wantSaid(t, fails(t, command, address+tt.path), tt.code, tt.message, tt.hint)
			}
		})
	}
}

func TestAddressesWhereNoServerIs(t *testing.T) {
	closed := replies(t, 200, "", "")
	plain := strings.TrimPrefix(closed, "http://")
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	secure := strings.TrimPrefix(encrypted.URL, "https://")
	alert := speaks(t, "\x15\x03\x01\x00\x02\x02\x46")
	other := speaks(t, "SSH-2.0-OpenSSH_9.6\r\n")
	silent := speaks(t, "")
	for _, tt := range []struct {
		name, address string
		message, hint string
		code          cli.ExitCode // ExitUnreachable if it is 0
	}{
		{"nobody listens", "http://127.0.0.1:1/mcp", "cannot be reached: the connection was refused", "is the server running?", 0},
		{"https, and the server speaks http", "https://" + plain + "/mcp", "was tried with TLS, which the server does not speak", "did you mean http://" + plain + "/mcp?", 0},
		{"http, and the server speaks https", "http://" + secure + "/mcp", "was tried without TLS, which the server wants", "did you mean https://" + secure + "/mcp?", cli.ExitMismatch},
		{"http, and the server sends an alert", "http://" + alert + "/mcp", "was tried without TLS, which the server wants", "did you mean https://" + alert + "/mcp?", 0},
		{"a certificate of one's own", "https://" + secure + "/mcp", `the certificate of "127.0.0.1" is from somebody whom this machine does not trust`, "SSL_CERT_FILE", 0},
		{"another protocol", "http://" + other + "/mcp", "does not speak HTTP", "is the port right?", 0},
		{"nothing is said", "http://" + silent + "/mcp", "closed the connection without an answer", "is the port right?", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, command := range []string{"ls", "probe"} {
				wantSaid(t, fails(t, command, tt.address), cmp.Or(tt.code, cli.ExitUnreachable), tt.message, tt.hint)
			}
		})
	}
}

// TestNamesThatCannotBeLookedUp: no test can rely on a name server.
func TestNamesThatCannotBeLookedUp(t *testing.T) {
	for _, tt := range []struct {
		err           error
		message, hint string
	}{
		{&net.DNSError{Err: "no such host", Name: "x.invalid", IsNotFound: true}, `there is no host named "x.invalid"`, "is the name spelled right?"},
		{&net.DNSError{Err: "server misbehaving", Name: "x.invalid", IsTemporary: true}, `the name "x.invalid" could not be looked up`, "connected to a network?"},
		{errors.New("x"), "connecting to http://x.invalid/mcp: x", ""},
		{context.Canceled, "connecting to http://x.invalid/mcp: context canceled", ""},
	} {
		said, hint := cli.Diagnosis("http://x.invalid/mcp", fmt.Errorf("dial tcp: %w", tt.err))
		if !strings.HasSuffix(strings.Replace(said, "dial tcp: ", "", 1), tt.message) || !strings.Contains(hint, tt.hint) {
			t.Errorf("%v: it said %q, %q", tt.err, said, hint)
		}
	}
}

// TestAddressIsToldWithoutSecrets: an address is told without what may be secret in it.
func TestAddressIsToldWithoutSecrets(t *testing.T) {
	address := strings.Replace(replies(t, 404, "text/html", page), "http://", "http://user:secret@", 1)
	got := fails(t, "ls", address+"/?token=secret")
	if said := fmt.Sprint(got); strings.Contains(said, "secret") || !strings.Contains(got.Hint, "/mcp?token=xxxxx") {
		t.Errorf("it said %s", said)
	}
}

func TestProgramsThatAreNoMCPServers(t *testing.T) {
	for _, tt := range []struct {
		name          string
		command       []string
		code          cli.ExitCode
		message, hint string
	}{
		{"one that sends back what it gets", []string{"cat"}, 7, `"cat" does not speak MCP: it sends back what it is sent`, "name the command of an MCP server"},
		{"one that prints and exits", []string{"echo", "hi"}, 7, `"echo" does not speak MCP: it printed "hi" and exited`, "name the command of an MCP server"},
		{"one that prints and prints", []string{"yes"}, 7, `"yes" does not speak MCP: it printed "y y y y`, "name the command of an MCP server"},
		{"one that does nothing", []string{"true"}, 4, `"true" ended before it answered (exit status 0)`, "is it an MCP server?"},
		{"one that fails", []string{"false"}, 4, `"false" ended before it answered (exit status 1)`, "it wrote nothing that says why"},
		{"one that says why it fails", []string{"sh", "-c", "echo a; echo b >&2; echo 'no key' >&2; exit 3"},
			4, `"sh" ended before it answered (exit status 3), and printed "a"; its stderr ends with "no key"`, "what it wrote says why"},
		{"none", []string{"no-such-program"}, 4, `there is no program "no-such-program" in the directories of PATH`, "is it installed"},
		{"none of that path", []string{"./no-such-program"}, 4, `there is no program "./no-such-program"`, "is the path right?"},
		{"a server that is none", []string{"demo"}, 4, `there is no program "demo"`, "stand without --"},
		{"a URL", []string{"http://127.0.0.1:1/mcp"}, 4, `there is no program "http://127.0.0.1:1/mcp"`, "stand without --"},
		{"words in one", []string{"npx -y server"}, 4, `there is no program "npx -y server"`, "without quotes around them all: -- npx -y server"},
		{"no program", []string{"./diagnosis_test.go"}, 4, `"./diagnosis_test.go" is there, but cannot be run`, "chmod +x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, command := range []string{"ls", "probe"} {
				got := fails(t, append([]string{command, "--"}, tt.command...)...)
				wantSaid(t, got, tt.code, tt.message, tt.hint)
				if len(got.Message) > 400 || len(got.Cause) > 4096 {
					t.Errorf("it said %d bytes, and the cause has %d", len(got.Message), len(got.Cause))
				}
			}
		})
	}
}

// TestProgramThatDoesNotAnswer is told from one that is slow, with what it printed.
func TestProgramThatDoesNotAnswer(t *testing.T) {
	got := fails(t, "probe", "--timeout", "4s", "--", "sh", "-c", "echo Welcome; echo 'no licence' >&2; exec sleep 60")
	wantSaid(t, got, cli.ExitTimedOut, `"sh" was started, but did not answer within 4s, and printed "Welcome"; its stderr ends with "no licence"`, "--timeout gives it longer")
}

func TestCallsWithoutAnAnswerAreToldPlainly(t *testing.T) {
	const call, list = mcp.MethodCallTool, mcp.MethodListTools
	for _, tt := range []struct {
		err  *mcp.CallError
		want string
	}{
		{&mcp.CallError{Method: call, Kind: mcp.TimedOut, Outcome: mcp.MaybeExecuted}, "the server did not answer in time; the tool may have been called"},
		{&mcp.CallError{Method: call, Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted}, "the connection to the server was lost; the tool may have been called"},
		{&mcp.CallError{Method: call, Kind: mcp.Unreachable, Outcome: mcp.NotSent}, "the server cannot be reached any more; the tool was not called"},
		{&mcp.CallError{Method: call, Kind: mcp.BadReply, Outcome: mcp.Answered}, "what the server answered is not MCP"},
		{&mcp.CallError{Method: list, Kind: mcp.TimedOut, Outcome: mcp.MaybeExecuted}, "the server did not answer in time"},
		{&mcp.CallError{Method: call, Kind: mcp.LimitExceeded, Limit: "MaxLine"}, ""},
	} {
		if got := cli.SaidOf(fmt.Errorf("x: %w", tt.err)); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}

// TestErrorsAreToldInOrder: what it is, the exact cause, and the way out.
func TestErrorsAreToldInOrder(t *testing.T) {
	var stderr bytes.Buffer
	cli.Main(t.Context(), []string{"ls", "--", "cat"}, cli.Streams{Out: os.Stdout, Err: &stderr})
	var begins []string
	for line := range strings.Lines(stderr.String()) {
		begins = append(begins, strings.Join(strings.SplitAfterN(line, ": ", 3)[:2], ""))
	}
	if got := strings.Join(begins, "|"); got != "mcpsplice: error: |mcpsplice: cause: |mcpsplice: hint: " {
		t.Errorf("it said %s", stderr.String())
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"
)

// TestMain lets the test binary be the example as well.
func TestMain(m *testing.M) { exampletest.Main(m, main) }

// converse runs the example and returns what it answers to lines of input.
func converse(t *testing.T, lines ...string) string {
	t.Helper()
	cmd := exampletest.Command()
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stderr = t.Output()
	output, err := cmd.Output()
	if err != nil {
		t.Errorf("the example ended with %v", err)
	}
	return string(output)
}

// expect checks that each of the wanted texts is in the output.
func expect(t *testing.T, output string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(output, want) {
			t.Errorf("the answers lack %s:\n%s", want, output)
		}
	}
}

const answer = `"content":[{"type":"text","text":"{\"hours\":2.5}"}],"structuredContent":{"hours":2.5}}}`

func TestLegacyClient(t *testing.T) {
	output := converse(t,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"travel","arguments":{"kilometres":250,"speed":100}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"travel","arguments":{"kilometres":250,"speed":0}}}`)
	expect(t, output,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"`,
		`"kilometres":{"type":"number","description":"how far it is"}`,
		`{"jsonrpc":"2.0","id":3,"result":{`+answer,
		`{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"at 0 km/h nobody arrives"}],"isError":true}}`)
}

func TestModernClient(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	output := converse(t,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"travel","arguments":{"kilometres":250,"speed":100},`+meta+`}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"travel","arguments":{"kilometres":"far"},`+meta+`}}`)
	expect(t, output,
		`"supportedVersions":["2026-07-28",`,
		`{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete",`, answer,
		`"text":"invalid arguments: `)
}

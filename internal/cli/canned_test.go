package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// canned is a legacy server that speaks stdio and gives what a file says. Each
// line of that is a method, with the name, the uri or the cursor that is asked
// for, and what is written: a notification as it is, then the rest of a
// response. "exit" ends the server instead.
//
//	tools/call:t {"jsonrpc":"2.0","method":"notifications/message","params":{}}
//	tools/call:t "result":{}
func canned(file string, in io.Reader, out io.Writer) int {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m jsonrpc.Message
		if jsonrpc.Scan(lines.Bytes(), &m) != nil || m.Kind != jsonrpc.Request {
			continue
		}
		var key strings.Builder
		key.Write(m.Method)
		for _, member := range []string{"name", "uri", "cursor"} {
			if name, ok := m.Body.LookupString(member); ok {
				key.WriteString(":" + name)
			}
		}
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		if key.String() == "initialize" {
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"canned","version":"1"}}`
		}
		for line := range strings.Lines(string(text)) {
			given, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch {
			case given != key.String():
			case rest == "exit":
				return 3
			case strings.HasPrefix(rest, "{"):
				fmt.Fprintln(out, rest)
			default:
				answer = rest
			}
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID.Raw(), answer)
	}
	return 0
}

package server_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// repeated returns n times a text with its number, between separators.
func repeated(n int, format, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, separator)
}

// nested returns depth times open, the kernel, and depth times end.
func nested(depth int, open, kernel, end string) string {
	return strings.Repeat(open, depth) + kernel + strings.Repeat(end, depth)
}

// in returns a schema of objects whose property a is another schema.
func in(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }

// TestLimitsOfSchemas: each at the limit and over it by one. The library of
// schemas would take minutes for some of these, and cannot be interrupted.
func TestLimitsOfSchemas_TJ2_TK1_B164_R35(t *testing.T) {
	nots := func(n int) string { return in(nested(n, `{"not":`, `true`, `}`)) }
	anys := func(n int) string { return in(`{"anyOf":[` + strings.Repeat(`{},`, n-1) + `{}]}`) }
	references := func(n int) string {
		return `{"type":"object","$defs":{"s":true},"properties":{"a":{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/s"},`, n), ",") + `]}}}`
	}
	// Each of the dynamic references may lead to each of the anchors.
	dynamic := func(n, anchors int) string {
		return `{"type":"object","$defs":{` + repeated(anchors, `"d%[1]d":{"$id":"https://example.com/%[1]d","$dynamicAnchor":"n"}`, ",") +
			`},"properties":{` + repeated(n, `"p%d":{"$dynamicRef":"https://example.com/0#n"}`, ",") + `}}`
	}
	bytes := func(n int) string {
		const around = `{"type":"object","title":""}`
		return strings.Replace(around, `""`, `"`+strings.Repeat("x", n-len(around))+`"`, 1)
	}
	values := func(n int) string { // four of them beside those of the enumeration
		return `{"type":"object","enum":[` + strings.Repeat("1,", n-4) + `1]}`
	}
	pattern := func(text string) string { return in(`{"pattern":"` + text + `"}`) }
	names := func(text string) string { return `{"type":"object","patternProperties":{"` + text + `":{}}}` }
	const maximum = server.MaxPatternSize
	tests := []struct{ limit, fits, over string }{
		{"MaxSchemaBytes", bytes(server.MaxSchemaBytes), bytes(server.MaxSchemaBytes + 1)},
		{"MaxSchemaNodes", values(server.MaxSchemaNodes), values(server.MaxSchemaNodes + 1)},
		{"MaxSchemaDepth", nots(server.MaxSchemaDepth - 1), nots(server.MaxSchemaDepth)},
		{"MaxSchemaDepth", nots(1), nots(9000)},
		{"MaxSchemaDepth", nots(1), in(nested(4000, `{"items":[`, `{}`, `]}`))},
		{"MaxSchemaDepth", nots(1), in(nested(4000, `{"properties":{"a":`, `{}`, `}}`))},
		{"MaxSubschemas", anys(server.MaxSubschemas - 2), anys(server.MaxSubschemas - 1)},
		{"MaxSchemaReferences", references(server.MaxSchemaReferences - 4), dynamic(101, 100)},
		{"MaxSchemaReferences", dynamic(100, 100), dynamic(3000, 3000)},
		{"MaxPatternSize", pattern(strings.Repeat("x", maximum)), pattern(strings.Repeat("x", maximum+1))},
		{"MaxPatternSize", pattern("(?:abcdefgh){1000}"), pattern("(?:abcdefghijk){1000}")},
		{"MaxPatternSize", names(strings.Repeat("x", maximum)), names(strings.Repeat("x", maximum+1))},
		{"MaxPatternSize", pattern("x"), pattern(strings.Repeat("(a|b)?", 20_000))},
	}
	for _, test := range tests {
		t.Run(test.limit, func(t *testing.T) {
			if reason := added(mcp.Tool{InputSchema: mcp.JSON(test.fits)}); reason != nil {
				t.Errorf("%.100s at the limit: %.300v", test.fits, reason)
			}
			start := time.Now()
			reason := fmt.Sprint(added(mcp.Tool{InputSchema: mcp.JSON(test.over)}))
			if took := time.Since(start); took > 10*time.Second { // 100 ms, on a machine that does nothing else
				t.Errorf("it took %v to refuse %.100s", took, test.over)
			}
			if !strings.Contains(reason, "limit "+test.limit+" of ") || len(reason) > 500 {
				t.Errorf("%.100s over the limit: %.300v", test.over, reason)
			}
		})
	}
}

// TestForeignReferences: what leads outside is refused when the tool is added. No
// connection is made and no file read.
func TestForeignReferences_TJ1_TJ3_B164(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan net.Conn, 100)
	go func() {
		defer close(connected)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connected <- conn
		}
	}()
	const canary = "sings"
	file := filepath.Join(t.TempDir(), "canary.json")
	if err := os.WriteFile(file, []byte(`{"type":"`+canary+`","$defs":{"a":{"const":"`+canary+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(file))
	host := listener.Addr().String()
	for _, to := range []string{
		"http://" + host + "/s.json", "https://" + host + "/s.json#/$defs/a", "//" + host + "/s.json", "ftp://" + host + "/s",
		"http://169.254.169.254/x", "file://" + file, "file://" + file + "#/$defs/a", "file:canary.json", file, "canary.json", "./canary.json#/$defs/a",
		"data:application/json,{}", "urn:uuid:0", "?s", "#/$defs/none", "#none", "%zz",
	} {
		for _, schema := range []string{
			`{"type":"object","$ref":"%s"}`, in(`{"$ref":"%s"}`), in(`{"items":[{"not":{"$ref":"%s"}}]}`),
			`{"type":"object","$dynamicRef":"%s"}`, in(`{"$dynamicRef":"%s"}`),
			`{"type":"object","$id":"http://` + host + `/root","properties":{"a":{"$ref":"%s"}}}`,
		} {
			schema = fmt.Sprintf(schema, to)
			for name, definition := range map[string]mcp.Tool{
				"input": {InputSchema: mcp.JSON(schema)}, "output": {OutputSchema: mcp.JSON(schema)},
			} {
				reason := added(definition)
				if reason == nil || strings.Contains(fmt.Sprint(reason), canary) {
					t.Errorf("%s %s: %v", name, schema, reason)
				}
			}
			if err := server.Check([]byte(schema), []byte(`{"a":[{}]}`)); err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%s is checked: %v", schema, err)
			}
		}
	}
	listener.Close()
	for conn := range connected {
		conn.Close()
		t.Error("a connection was made")
	}
}

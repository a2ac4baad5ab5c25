package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// TestToolThatIsLeftOut_B119 is not in the list of a server of HTTP, and whoever
// misses it is told why.
func TestToolThatIsLeftOut_B119(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m jsonrpc.Message
		if jsonrpc.Scan(body, &m) != nil {
			return
		}
		members := `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}`
		if string(m.Method) == "tools/list" {
			members = `"tools":[{"name":"good","inputSchema":{"type":"object"}},` +
				`{"name":"bad","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}]`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}`, m.ID.Raw(), members)
	}))
	defer server.Close()
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var said strings.Builder
	code := cli.Main(t.Context(), []string{"ls", server.URL}, cli.Streams{Out: out, Err: &said})
	listed, err := os.ReadFile(out.Name())
	if code != cli.ExitOK || err != nil || string(listed) != "good()\t\n" {
		t.Errorf("it ended with %d, and listed %q, %v", code, listed, err)
	}
	if got := said.String(); !strings.HasPrefix(got, `mcpsplice: "bad" is left out of the list: `) || strings.Count(got, "\n") != 1 {
		t.Errorf("it said %q", got)
	}
}

// TestListeningThatIsInterrupted is told whoever watches: over HTTP nothing else shows
// that the server has gone.
func TestListeningThatIsInterrupted(t *testing.T) {
	var listening atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m jsonrpc.Message
		if jsonrpc.Scan(body, &m) != nil {
			return
		}
		if string(m.Method) != "subscriptions/listen" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",`+
				`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`, m.ID.Raw())
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: "+`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+
			`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`+"\n\n", m.ID.Raw())
		w.(http.Flusher).Flush()
		if listening.Add(1) > 1 {
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var said strings.Builder
	code := cli.Main(t.Context(), []string{"watch", "--count", "1", server.URL}, cli.Streams{Out: out, Err: &said})
	changes, err := os.ReadFile(out.Name())
	if code != cli.ExitOK || err != nil || string(changes) != "resynced\n" {
		t.Errorf("it ended with %d, and printed %q, %v", code, changes, err)
	}
	if got := said.String(); !strings.Contains(got, "mcpsplice: listening was interrupted, and is tried again: ") || strings.Contains(got, "maybe executed") {
		t.Errorf("it said %q", got)
	}
}

package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestHeaderAnnotationsAreKnownBeforeAnybodyLists_B119(t *testing.T) {
	s := server.New(mcp.Implementation{Name: "test", Version: "1"}, nil)
	s.AddTool(mcp.Tool{
		Name:        "query",
		InputSchema: mcp.JSON(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
	}, func(context.Context, *server.Call) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"content":[]}`)), nil
	})
	handler := streamable.NewHandler(s, nil)
	defer handler.Close()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"region":"eu"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, test := range []struct {
		region string
		status int
	}{{"eu", http.StatusOK}, {"us", http.StatusBadRequest}, {"", http.StatusBadRequest}} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8421/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "query")
		if test.region != "" {
			r.Header.Set("Mcp-Param-Region", test.region)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("the region %q got the status %d, not %d: %s", test.region, w.Code, test.status, w.Body)
		}
	}
}

// Tools that come and go leave nothing behind that fills the memory for headers.
func TestHeaderAnnotationsGoWithTheirTool_B119(t *testing.T) {
	s := server.New(mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, schema := range []string{`{"type":"object"}`, `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`} {
		s.AddTool(mcp.Tool{Name: "query", InputSchema: mcp.JSON(schema)}, nil)
		if _, known := s.ToolHeaders().Lookup("query"); !known {
			t.Error("the tool is not known")
		}
		s.RemoveTools("query", "none")
		if headers, known := s.ToolHeaders().Lookup("query"); known || headers != nil {
			t.Errorf("the removed tool has the headers %v", headers)
		}
	}
}

// A tool that is removed and added at the same time has its headers if it is there: without
// them nobody checks those of its calls.
func TestHeaderAnnotationsStayWithTheirTool_B119(t *testing.T) {
	s := server.New(mcp.Implementation{Name: "test", Version: "1"}, nil)
	definition := mcp.Tool{Name: "query", InputSchema: mcp.JSON(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)}
	removed := append(slices.Repeat([]string{"none"}, 1000), "query") // which takes a moment
	for range 50 {
		var changing sync.WaitGroup
		changing.Go(func() {
			for range 10 {
				s.AddTool(definition, nil)
			}
		})
		changing.Go(func() { s.RemoveTools(removed...) })
		changing.Wait()
		list, err := s.Handle(t.Context(), request(mcp.MethodListTools, `{}`), mcp.NoCaller{})
		if err != nil {
			t.Fatal(err)
		}
		there := strings.Contains(string(list.Raw()), `"query"`)
		if _, known := s.ToolHeaders().Lookup("query"); known != there {
			t.Fatalf("it is there: %t; its headers are known: %t", there, known)
		}
	}
}

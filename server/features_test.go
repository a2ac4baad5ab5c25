package server_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func addTools(s *server.Server, names ...string) {
	for _, name := range names {
		s.AddTool(mcp.Tool{Name: name}, func(context.Context, *server.Call) (mcp.Result, error) { return mcp.Result{}, nil })
	}
}

// page returns the names on one page of tools, and the cursor of the next.
func page(t *testing.T, s *server.Server, cursor string) (names []string, next string) {
	t.Helper()
	params := `{}`
	if cursor != "" {
		params = `{"cursor":"` + cursor + `"}`
	}
	raw, err := handle(t, s, mcp.MethodListTools, params)
	if err != nil {
		t.Fatal(err)
	}
	var result mcp.ListToolsResult
	if err := mcp.JSON(raw).Decode(&result); err != nil {
		t.Fatal(err)
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names, result.NextCursor
}

func pages(t *testing.T, s *server.Server) (all [][]string) {
	t.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		var names []string
		names, cursor = page(t, s, cursor)
		all = append(all, names)
	}
	return all
}

func TestListsHaveAStableOrderAndPages_B032_B142(t *testing.T) {
	s := newServer(&server.Options{PageSize: 2})
	addTools(s, "c", "a", "é", "B", "b", "a") // the last one replaces the first
	want := [][]string{{"B", "a"}, {"b", "c"}, {"é"}}
	for range 2 {
		if got := pages(t, s); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("the pages are %q", got)
		}
	}
	s.RemoveTools("é", "none")
	if got := pages(t, s); !slices.EqualFunc(got, want[:2], slices.Equal) {
		t.Errorf("without one the pages are %q", got)
	}
	s.RemoveTools("a", "b", "c", "B")
	if got := pages(t, s); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("without any the pages are %q", got)
	}
}

func TestCursorsOutliveFeaturesAndServers(t *testing.T) {
	s := newServer(&server.Options{PageSize: 2})
	addTools(s, "a", "b", "c", "d")
	_, cursor := page(t, s, "")
	s.RemoveTools("b")
	if got, _ := page(t, s, cursor); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("after the removal of its tool the cursor leads to %q", got)
	}
	addTools(s, "bb")
	if got, _ := page(t, s, cursor); !slices.Equal(got, []string{"bb", "c"}) {
		t.Errorf("after an addition the cursor leads to %q", got)
	}
	s.RemoveTools("bb", "c", "d")
	if got, next := page(t, s, cursor); len(got) != 0 || next != "" {
		t.Errorf("the cursor of what has gone leads to %q and %q", got, next)
	}
	restarted := newServer(&server.Options{PageSize: 1})
	addTools(restarted, "a", "b", "c")
	if got, _ := page(t, restarted, cursor); !slices.Equal(got, []string{"c"}) {
		t.Errorf("after a restart the cursor leads to %q", got)
	}
	whole := newServer(&server.Options{PageSize: math.MaxInt})
	addTools(whole, "a", "b", "c", "d")
	if got, _ := page(t, whole, cursor); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("where there are no pages the cursor leads to %q", got)
	}
}

func TestCursorsThatAreNone_B142(t *testing.T) {
	s := newServer(&server.Options{PageSize: 1})
	addTools(s, "a", "b")
	s.AddPrompt(mcp.Prompt{Name: "a"}, nil)
	s.AddPrompt(mcp.Prompt{Name: "b"}, nil)
	_, cursor := page(t, s, "")
	if _, err := handle(t, s, mcp.MethodListPrompts, `{"cursor":"`+cursor+`"}`); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) {
		t.Errorf("of another list: %v", err)
	}
	for name, raw := range map[string]string{
		"garbage": `"%%%"`, "empty": `""`, "a number": `1`, "an object": `{}`, "no list": `"` + base64.RawURLEncoding.EncodeToString([]byte("a")) + `"`,
		"huge": `"` + strings.Repeat("A", 1<<20) + `"`, "padded": `"` + cursor + `=="`, "escaped garbage": `"\ud800"`, "quotes and breaks": `"\"\n"`,
	} {
		_, err := handle(t, s, mcp.MethodListTools, `{"cursor":`+raw+`}`)
		if !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) || len(fmt.Sprint(err)) > 300 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	if _, err := handle(t, s, mcp.MethodListTools, `{"cursor":null}`); err != nil {
		t.Errorf("null: %v", err)
	}
}

func TestListsWhileTheyChange(t *testing.T) {
	s := newServer(&server.Options{PageSize: 3})
	addTools(s, "always1", "always2", "always3", "always4", "always5")
	var changing sync.WaitGroup
	for i := range 4 {
		changing.Go(func() {
			for n := range 200 {
				name := fmt.Sprintf("t%d-%d", i, n%10)
				if n%2 == 0 {
					addTools(s, name)
				} else {
					s.RemoveTools(name)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { changing.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		all := slices.Concat(pages(t, s)...)
		if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Fatalf("the list is %q", all)
		}
		for i := range 5 {
			if !slices.Contains(all, fmt.Sprintf("always%d", i+1)) {
				t.Fatalf("the list lacks one: %q", all)
			}
		}
	}
}

func TestSchemasAreListedByteForByte(t *testing.T) {
	input := "{ \"type\" :\t\"object\", \"z\": 1.50E+3, \"a\":123456789012345678901234567890, \"\\u0041\\/\":\"\\u00e9é<>&\\ud83d\\ude00\", \"b\":[ 1 , 2 ] } "
	output := `{"x":-0.0,  "type":"object"}`
	s := newServer(nil)
	server.AddTool(s, mcp.Tool{Name: "typed", InputSchema: mcp.JSON(input), OutputSchema: mcp.JSON(output)},
		func(context.Context, *server.Call, mcp.JSON) (mcp.JSON, error) { return nil, nil })
	s.AddTool(mcp.Tool{Name: "raw", InputSchema: mcp.JSON(input), Meta: mcp.Object{"m": mcp.JSON(`"\u0041"`)}}, nil)
	raw, err := handle(t, s, mcp.MethodListTools, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"name":"typed","inputSchema":` + input + `,"outputSchema":` + output + `}`,
		`{"name":"raw","inputSchema":` + input + `,"_meta":{"m":"\u0041"}}`,
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s\nlacks %s", raw, want)
		}
	}
	// A message is one line.
	broken := strings.ReplaceAll(input, " ", "\n")
	s.AddTool(mcp.Tool{Name: "raw", InputSchema: mcp.JSON(broken)}, nil)
	if raw, _ = handle(t, s, mcp.MethodListTools, `{}`); !strings.Contains(raw, `"inputSchema":`+strings.ReplaceAll(broken, "\n", "")) {
		t.Errorf("%s", raw)
	}
}

func TestWhatIsNotDeclaredDoesNotExist_B034(t *testing.T) {
	methods := map[string]string{
		mcp.MethodListTools: `{}`, mcp.MethodCallTool: `{"name":"a"}`, mcp.MethodListPrompts: `{}`, mcp.MethodGetPrompt: `{"name":"a"}`,
		mcp.MethodListResources: `{}`, mcp.MethodListResourceTemplates: `{}`, mcp.MethodReadResource: `{"uri":"u:1"}`,
		mcp.MethodComplete: `{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"a","value":""}}`, "x/y": `{}`,
	}
	empty := newServer(nil)
	declared := newServer(&server.Options{Capabilities: mcp.ServerCapabilitySet{
		Tools: &mcp.ListCapability{}, Prompts: &mcp.ListCapability{}, Resources: &mcp.ResourceCapability{}, Completions: mcp.Object{},
	}})
	missing := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}
	for method, params := range methods {
		if _, err := handle(t, empty, method, params); !errors.Is(err, missing) {
			t.Errorf("%s: %v", method, err)
		}
		if _, err := handle(t, declared, method, params); method != "x/y" && errors.Is(err, missing) {
			t.Errorf("%s is declared: %v", method, err)
		}
	}
	// What was there once stays declared.
	addTools(empty, "a")
	empty.RemoveTools("a")
	if _, err := handle(t, empty, mcp.MethodListTools, `{}`); err != nil {
		t.Error(err)
	}
}

package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yosida95/uritemplate/v3"
	"pgregory.net/rapid"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// variables are what those of a template are found to be.
type variables = map[string]string

// matched returns the variables with which a server reads a URI of a template, nil
// if it does not.
func matched(t interface{ Fatal(...any) }, template, uri string) (found variables) {
	s := newServer(nil)
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: template, Name: "t"},
		func(_ context.Context, _ *server.Call, _ string, v map[string]string) (*mcp.ReadResourceResult, error) {
			found = v
			return server.TextContents("", ""), nil
		})
	req := request(mcp.MethodReadResource, `{"uri":`+string(jsonrpc.AppendString(nil, uri))+`}`)
	_, err := s.Handle(context.Background(), req, mcp.NoCaller{})
	wire := jsonrpc.ToWire(err)
	if err != nil && wire.Code != jsonrpc.CodeResourceNotFound && wire.Code != jsonrpc.CodeInvalidParams {
		t.Fatal(err)
	}
	return found
}

func TestURITemplates(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          variables
	}{
		{"u:{a}", "u:x", variables{"a": "x"}},
		{"u:{a}", "u:", variables{"a": ""}},
		{"u:{a}", "u:%C3%A9%2f", variables{"a": "é/"}},
		{"u:{a}", "u:x,y", variables{"a": "x,y"}},
		{"u:{a}", "u:x/y", nil},
		{"u:{a}", "v:x", nil},
		{"u:{a}", "u:x\ny", nil},
		{"u:{a}", "u:%", nil},
		{"u:{a}", "u:%4", nil},
		{"u:{a}", "u:%zz", nil},
		{"u:{a}", "u:%FF", nil}, // no UTF-8
		{"u:{a}", "u:é", nil},
		{"u:{a}.txt", "u:x.txt", variables{"a": "x"}},
		{"u:{a}.txt", "u:xtxt", nil},
		{"u:{a,b}", "u:x,y", variables{"a": "x", "b": "y"}},
		{"u:{a,b}", "u:x", variables{"a": "x", "b": ""}},
		{"u:{a:3}", "u:xyz", variables{"a": "xyz"}},
		{"u:{a:3}", "u:wxyz", nil},
		{"u:{a:3}", "u:%41%42%43", variables{"a": "ABC"}},
		{"u:{a}/{a}", "u:x/x", variables{"a": "x"}},
		{"u:{a}/{a}", "u:x/y", nil},
		{"u:{+a}", "u:x/../y?z#f,", variables{"a": "x/../y?z#f,"}},
		{"u:{+a}/end", "u:x/y/end", variables{"a": "x/y"}},
		{"u:x{#a}", "u:x#f/1", variables{"a": "f/1"}},
		{"u:x{#a}", "u:x", variables{"a": ""}},
		{"u:x{.a}", "u:x.json", variables{"a": "json"}},
		{"u:x{/a}", "u:x/y", variables{"a": "y"}},
		{"u:x{/a}", "u:x/y/z", nil},
		{"u:x{/a,b}", "u:x/y/z", variables{"a": "y", "b": "z"}},
		{"u:x{/a*}", "u:x/y/z", variables{"a": "y/z"}},
		{"u:x{;a,b}", "u:x;a=1;b", variables{"a": "1", "b": ""}},
		{"u:x{?a,b}", "u:x?a=1&b=2", variables{"a": "1", "b": "2"}},
		{"u:x{?a,b}", "u:x?b=2", variables{"a": "", "b": "2"}},
		{"u:x{?a,b}", "u:x", variables{"a": "", "b": ""}},
		{"u:x{?a,b}", "u:x?a=1b=2", nil},
		{"u:x{?a,b}", "u:x&b=2", nil},
		{"u:x{?a,b}", "u:x?c=1", nil},
		{"u:x?k=v{&a}", "u:x?k=v&a=1", variables{"a": "1"}},
		{"u:x{?a*}", "u:x?a=1&a=2", variables{"a": "1&a=2"}},
		{"u:(.*){a}", "u:(.*)x", variables{"a": "x"}},
		{"u:(.*){a}", "u:anyx", nil},
	} {
		if diff := cmp.Diff(test.want, matched(t, test.template, test.uri)); diff != "" {
			t.Errorf("%s and %s: %s", test.template, test.uri, diff)
		}
	}
}

// TestExpandedTemplatesMatch: what a template is expanded to is one of its URIs.
func TestExpandedTemplatesMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := rapid.SampledFrom([]string{
			"u:{a}/{b}", "u:{a,b}", "u:{+a}?b={b}", "u:x{#a}", "u:x{/a,b}", "u:x{?a,b}", "u:x?y{&a,b}", "u:x{;a,b}", "{a}",
		}).Draw(t, "template")
		want := variables{}
		values := uritemplate.Values{}
		for _, name := range []string{"a", "b"} {
			if strings.Contains(template, "a,b") || strings.Contains(template, "{"+name) || strings.Contains(template, name+"}") {
				want[name] = rapid.StringMatching(`[a-zA-Z0-9 /,&=?%:#~-]{0,20}`).Draw(t, name)
				values.Set(name, uritemplate.String(want[name]))
			}
		}
		uri, err := uritemplate.MustNew(template).Expand(values)
		if err != nil {
			t.Fatal(err)
		}
		got := matched(t, template, uri)
		if strings.Contains(template, "+") || strings.Contains(template, "#") {
			if got == nil { // their values may be read in other ways
				t.Fatalf("%s does not match %s", template, uri)
			}
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s and %s: %s", template, uri, diff)
		}
	})
}

func TestLongestURI(t *testing.T) {
	s := newServer(nil)
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "u:{a}", Name: "t"},
		func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
			return server.TextContents("", ""), nil
		})
	uri := "u:" + strings.Repeat("a", server.MaxURI-len("u:"))
	if _, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+uri+`"}`); err != nil {
		t.Errorf("the longest: %v", err)
	}
	if _, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+uri+`a"}`); err == nil || !strings.Contains(err.Error(), "MaxURI") {
		t.Errorf("a longer one: %v", err)
	}
}

func TestHostileURIs_TA6(t *testing.T) {
	templates := []string{"u:{a}", "u:{a}{b}{c}", "u:{+a}", "u:{+a}{+b}{+c}{+d}/end", "u:{/a*}{?b*}", "u:{a,b,c,d}", "u:{?a,b,c,d,e,f,g,h}", "u:{a:999}{b:999}"}
	s := newServer(nil)
	for _, template := range templates {
		s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: template, Name: "t"},
			func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
				return server.TextContents("", ""), nil
			})
	}
	for _, unit := range []string{"a", "a,", "/a", "a=b&", "%41", "%", "%2", ".", "?", "{a}", ",", "é", "(", `\\`} {
		for _, size := range []int{server.MaxURI - 2, server.MaxURI - 1, 100_000} {
			uri := "u:" + strings.Repeat(unit, size/len(unit)+1)[:size]
			start := time.Now()
			_, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+strings.ToValidUTF8(uri, "x")+`"}`)
			if took := time.Since(start); took > 10*time.Second { // 100 ms, on a machine that does nothing else
				t.Errorf("%d bytes of %q took %v", size, unit, took)
			}
			over := errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) && strings.Contains(err.Error(), "limit MaxURI of 8192")
			if over != (len(uri) > server.MaxURI) && !strings.Contains(unit, `\`) && unit != "é" {
				t.Errorf("%d bytes of %q: %v", len(uri), unit, err)
			}
		}
	}
	// A resource of its own URI is not compared with anything.
	long := "u:" + strings.Repeat("a", 2*server.MaxURI)
	s.AddResource(mcp.Resource{URI: long, Name: "long"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.TextContents("", ""), nil
	})
	if _, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+long+`"}`); err != nil {
		t.Error(err)
	}
}

// TestTraversal: a function gets what a client has chosen, and with [os.Root], as
// the documentation has it, no file outside is read.
func TestTraversal_TA6_SEC123(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	for _, err := range []error{
		os.Mkdir(inside, 0o700), os.Mkdir(inside+"_evil", 0o700),
		os.WriteFile(filepath.Join(inside, "a.txt"), []byte("fine"), 0o600),
		os.WriteFile(filepath.Join(dir, "canary"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(inside+"_evil", "canary"), []byte("secret"), 0o600),
		os.Symlink(filepath.Join(dir, "canary"), filepath.Join(inside, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	read := func(_ context.Context, _ *server.Call, uri string, v map[string]string) (*mcp.ReadResourceResult, error) {
		data, err := root.ReadFile(v["path"])
		if err != nil {
			return nil, server.NotFound(uri)
		}
		return server.TextContents("", string(data)), nil
	}
	for _, template := range []string{"file:///{path}", "file:///{+path}", "file://{/path*}"} {
		s := newServer(nil)
		s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: template, Name: "files"}, read)
		if got, err := handle(t, s, mcp.MethodReadResource, `{"uri":"file:///a.txt"}`); err != nil || !strings.Contains(got, "fine") {
			t.Errorf("%s: %s, %v", template, got, err)
		}
		for _, path := range []string{
			"../canary", "..%2Fcanary", "%2e%2e/canary", "%2e%2e%2fcanary", "..%5Ccanary", "x/../../canary", "../inside_evil/canary",
			"%2Fetc%2Fpasswd", "/etc/passwd", filepath.ToSlash(filepath.Join(dir, "canary")), "link", "link%00", "a.txt%00.png", "%252e%252e/canary", "..", ".", "",
			"/host/share", "A.TXT:stream",
		} {
			got, err := handle(t, s, mcp.MethodReadResource, `{"uri":"file:///`+path+`"}`)
			if !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeResourceNotFound}) {
				t.Errorf("%s and %q: %s, %v", template, path, got, fmt.Sprint(err))
			}
		}
	}
}

func FuzzURITemplates(f *testing.F) {
	for _, seed := range [][2]string{
		{"u:{a}", "u:x"}, {"u:{+a}{?b,c*}", "u:x/y?b=1&c=2&c=3"}, {"{a:3}{#f}{.e}{/p*}{;q}", "abc#f.e/p/q;q=1"}, {"u:%41{a}", "u:%41%42"}, {"{a}{a}", "xx"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, template, uri string) {
		if _, err := uritemplate.New(template); err != nil || template == "" || len(template) > 500 || !utf8.ValidString(uri) {
			return
		}
		defer func() {
			if reason := fmt.Sprint(recover()); reason != "<nil>" && !strings.Contains(reason, "too large") {
				t.Error(reason)
			}
		}()
		for name, value := range matched(t, template, uri) {
			if !strings.Contains(template, name) || !utf8.ValidString(value) || len(value) > len(uri) {
				t.Errorf("%s and %s: %s is %q", template, uri, name, value)
			}
		}
	})
}

package skills_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/skills"
)

const (
	root    = "skill://pdf"
	main    = root + "/SKILL.md"
	forms   = root + "/references/FORMS.md"
	picture = root + "/assets/a.png"
)

const mainText = "---\nname: pdf\ndescription: Fills in forms.\n---\n\nSee references/FORMS.md.\n"

const usual = `{"name":"pdf","description":"Fills in forms."}`

// A shelf is a server with skills.
type shelf struct {
	declared string                          // its capabilities
	entries  []string                        // of skills/list, all on one page
	pages    map[string]string               // results of skills/list by cursor, instead
	texts    map[string]string               // files by URI
	results  map[string]string               // of resources/read by URI, instead
	get      func(uri string) (string, bool) // entry by URI; nil takes entries
	got      string                          // result of skills/get, instead

	mu    sync.Mutex
	asked []string // methods, with the URI; guarded by mu
}

// newShelf returns a server with one skill of three files.
func newShelf() *shelf {
	s := &shelf{
		declared: `{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}`,
		texts: map[string]string{
			main: mainText, forms: "Forms are filled in.\n", picture: "\x89PNG\x00\xff",
		},
	}
	s.entries = []string{s.entry(usual)}
	return s
}

// entry returns the entry of the skill with all its files as they are.
func (s *shelf) entry(frontmatter string) string {
	var files []string
	for _, uri := range []string{main, forms, picture} {
		files = append(files, fileOf(uri, s.texts[uri]))
	}
	return entryOf(main, frontmatter, "["+strings.Join(files, ",")+"]")
}

func entryOf(uri, frontmatter, resources string) string {
	return fmt.Sprintf(`{"uri":%q,"frontmatter":%s,"resources":%s}`, uri, frontmatter, resources)
}

func fileOf(uri, text string) string {
	return fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, uri, sha256.Sum256([]byte(text)), len(text))
}

// Handle implements mcp.Handler.
func (s *shelf) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	uri, _ := req.Params.LookupString("uri")
	switch req.Method {
	case mcp.MethodDiscover:
		return result(`{"supportedVersions":["2026-07-28"],"capabilities":%s}`, s.declared)
	case mcp.MethodListen:
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}
	s.note(strings.TrimSpace(req.Method + " " + uri))
	switch req.Method {
	case skills.MethodList:
		cursor, _ := req.Params.LookupString("cursor")
		if s.pages != nil {
			return result("%s", s.pages[cursor])
		}
		return result(`{"skills":[%s],"ttlMs":60000,"cacheScope":"public"}`, strings.Join(s.entries, ","))
	case skills.MethodGet:
		if s.got != "" {
			return result("%s", s.got)
		}
		if entry, ok := s.find(uri); ok {
			return result(`{"skill":%s,"ttlMs":0,"cacheScope":"public"}`, entry)
		}
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "No skill is served at %s", uri)
	case mcp.MethodReadResource:
		return s.read(uri)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func (s *shelf) find(uri string) (string, bool) {
	if s.get != nil {
		return s.get(uri)
	}
	i := slices.IndexFunc(s.entries, func(e string) bool { return strings.Contains(e, `{"uri":"`+uri) })
	if i < 0 {
		return "", false
	}
	return s.entries[i], true
}

func (s *shelf) read(uri string) (mcp.Result, error) {
	if raw, ok := s.results[uri]; ok {
		return result("%s", raw)
	}
	text, ok := s.texts[uri]
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "No resource %s", uri)
	}
	contents := mcp.ResourceContents{URI: uri, MIMEType: "text/markdown", Text: &text}
	if strings.HasSuffix(uri, ".png") {
		contents = mcp.ResourceContents{URI: uri, MIMEType: "image/png", Blob: []byte(text)}
	}
	return mcp.NewResult(mcp.ReadResourceResult{Contents: []mcp.ResourceContents{contents}})
}

func (s *shelf) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
}

// wasAsked fails the test unless the server was asked exactly that since the last time.
func (s *shelf) wasAsked(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.asked, want) {
		t.Errorf("the server was asked %q, want %q", s.asked, want)
	}
	s.asked = nil
}

func result(format string, args ...any) (mcp.Result, error) {
	return mcp.RawResult(fmt.Appendf(nil, format, args...)), nil
}

// connect connects to a server in this process.
func connect(t testing.TB, h mcp.Handler) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Handler(h), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open returns a reader of a server's skills.
func open(t testing.TB, s *shelf, opts *skills.Options) *skills.Reader {
	t.Helper()
	r, err := skills.Open(t.Context(), connect(t, s), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// first returns the first skill that the server lists.
func first(t testing.TB, r *skills.Reader) *skills.Skill {
	t.Helper()
	for skill, err := range r.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		return skill
	}
	t.Fatal("there is no skill")
	return nil
}

// load loads the first skill.
func load(t testing.TB, s *shelf, opts *skills.Options) (*skills.Loaded, error) {
	t.Helper()
	r := open(t, s, opts)
	skill := first(t, r)
	s.mu.Lock()
	s.asked = nil
	s.mu.Unlock()
	return r.Load(t.Context(), skill)
}

// verification fails the test unless err is a VerificationError of a kind.
func verification(t *testing.T, err, kind error) *skills.VerificationError {
	t.Helper()
	failed, ok := errors.AsType[*skills.VerificationError](err)
	if !ok || !errors.Is(err, kind) {
		t.Fatalf("the error is %v, want one that is %v", err, kind)
	}
	return failed
}

// limit fails the test unless err is a LimitError of a limit.
func limit(t *testing.T, err error, name string) *skills.LimitError {
	t.Helper()
	failed, ok := errors.AsType[*skills.LimitError](err)
	if !ok || failed.Limit != name || !strings.Contains(err.Error(), name) || failed.Got <= failed.Max {
		t.Fatalf("the error is %v, want the limit %s", err, name)
	}
	return failed
}

// blobOf returns a result of resources/read that is not text.
func blobOf(uri, text string) string {
	return fmt.Sprintf(`{"contents":[{"uri":%q,"blob":%q}]}`, uri, base64.StdEncoding.EncodeToString([]byte(text)))
}

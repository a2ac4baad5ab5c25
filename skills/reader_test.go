package skills_test

import (
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/skills"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestOffered: a server that does not declare the extension is asked nothing.
func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		declared string
		want     bool
	}{
		{`{"extensions":{"io.modelcontextprotocol/skills":{}}}`, true},
		{`{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}`, true},
		{`{}`, false},
		{`{"resources":{}}`, false},
		{`{"extensions":{}}`, false},
		{`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, false},
		{`{"extensions":{"io.modelcontextprotocol/skills":null}}`, false},
		{`{"extensions":{"io.modelcontextprotocol/skills":true}}`, false},
	} {
		t.Run(tt.declared, func(t *testing.T) {
			s := newShelf()
			s.declared = tt.declared
			c := connect(t, s)
			got, err := skills.Offered(t.Context(), c)
			if err != nil || got != tt.want {
				t.Errorf("offered: %t, %v", got, err)
			}
			if _, err := skills.Open(t.Context(), c, nil); errors.Is(err, skills.ErrNotOffered) == tt.want {
				t.Errorf("opening: %v", err)
			}
			s.wasAsked(t)
		})
	}
}

// TestListReadsNoFile: entries say everything that a host shows.
func TestListReadsNoFile(t *testing.T) {
	s := newShelf()
	other := strings.ReplaceAll(s.entries[0], root, "github://a/b/skills/pdf")
	s.pages = map[string]string{
		"":  `{"skills":[` + s.entries[0] + `,{"uri":7}],"nextCursor":"2"}`,
		"2": `{"skills":[],"nextCursor":"3"}`,
		"3": `{"skills":[` + other + `]}`,
	}
	r := open(t, s, nil)
	var uris []string
	for skill, err := range r.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, skill.URI)
		if err := skill.Check(); (err == nil) != (skill.URI != "") {
			t.Errorf("%s: %v", skill.URI, err)
		}
		if skill.URI != main {
			continue
		}
		if skill.Name() != "pdf" || skill.Description() != "Fills in forms." || string(skill.Frontmatter) != usual ||
			len(skill.Files) != 3 || skill.Files[1].URI != forms || skill.Files[1].Size != 21 || skill.Dynamic {
			t.Errorf("the entry is %+v", skill)
		}
	}
	if want := []string{main, "", "github://a/b/skills/pdf/SKILL.md"}; !slices.Equal(uris, want) {
		t.Errorf("the list is %q, want %q", uris, want)
	}
	s.wasAsked(t, "skills/list", "skills/list", "skills/list")
	for range r.List(t.Context()) {
		break
	}
	s.wasAsked(t, "skills/list")
}

// TestListsThatAreNone end with an error and not in silence.
func TestListsThatAreNone(t *testing.T) {
	for _, page := range []string{
		`{}`, `{"skills":null}`, `{"skills":{}}`, `{"skills":"all"}`,
		`{"skills":[],"nextCursor":"again"}`, `{"skills":[],"nextCursor":7}`,
	} {
		t.Run(page, func(t *testing.T) {
			s := newShelf()
			s.pages = map[string]string{"": page, "again": page}
			var last error
			for skill, err := range open(t, s, nil).List(t.Context()) {
				if last = err; err == nil {
					t.Errorf("there is %+v", skill)
				}
			}
			failed, ok := errors.AsType[*mcp.CallError](last)
			if !ok || failed.Kind != mcp.BadReply || failed.Method != skills.MethodList {
				t.Errorf("the list ends with %v", last)
			}
		})
	}
}

// TestGet finds skills that are not listed, in the form that they have now.
func TestGet(t *testing.T) {
	s := newShelf()
	hidden := strings.ReplaceAll(s.entries[0], root, "skill://more/pdf")
	const uri = "skill://more/pdf/SKILL.md"
	for _, tt := range []struct {
		name, entry string
		kind        error // of a VerificationError
	}{
		{"not listed", hidden, nil},
		{"another skill", s.entries[0], skills.ErrEntry},
		{"not valid", `{"uri":"` + uri + `"}`, skills.ErrEntry},
		{"no object", `7`, skills.ErrEntry},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			s.get = func(string) (string, bool) { return tt.entry, true }
			skill, err := open(t, s, nil).Get(t.Context(), uri)
			if tt.kind != nil {
				verification(t, err, tt.kind)
				return
			}
			if err != nil || skill.URI != uri || len(skill.Files) != 3 {
				t.Errorf("%+v, %v", skill, err)
			}
		})
	}
}

func TestUnknownSkillIsTheServersError(t *testing.T) {
	r := open(t, newShelf(), nil)
	_, err := r.Get(t.Context(), "skill://nobody/SKILL.md")
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("the error is %v", err)
	}
}

func TestGetWithoutSkillIsABadReply(t *testing.T) {
	for _, entry := range []string{"", `,"skills":[]`} {
		s := newShelf()
		s.got = `{"ttlMs":0` + entry + `}`
		_, err := open(t, s, nil).Get(t.Context(), main)
		failed, ok := errors.AsType[*mcp.CallError](err)
		if !ok || failed.Kind != mcp.BadReply || failed.Method != skills.MethodGet {
			t.Errorf("%s: the error is %v", s.got, err)
		}
	}
}

// TestOverTheWire: the extension works with servers of both eras.
func TestOverTheWire(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) {
			s := newShelf()
			handler := streamable.NewHandler(s, nil)
			server := httptest.NewServer(handler)
			defer server.Close()
			defer handler.Close()
			c, err := client.Connect(t.Context(), client.URL(server.URL), &client.Options{Era: era})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, err := skills.Open(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := r.Load(t.Context(), first(t, r))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{forms, picture} {
				got, err := loaded.Read(t.Context(), file)
				if err != nil || string(got.Bytes) != s.texts[file] || !got.Verified {
					t.Errorf("%s: %+v, %v", file, got, err)
				}
			}
			_, err = r.Get(t.Context(), "skill://nobody/SKILL.md")
			if refused, ok := errors.AsType[*jsonrpc.Error](err); !ok || refused.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("an unknown skill: %v", err)
			}
		})
	}
}

// TestLimitsOfEntries: a skill that is too large is refused before it is read.
func TestLimitsOfEntries(t *testing.T) {
	file := func(i int, size int64) string {
		return fmt.Sprintf(`{"uri":"%s/%d","digest":"sha256:%064d","size":%d}`, root, i, 0, size)
	}
	sized := func(n int, size int64) (files []string) {
		for i := range n {
			files = append(files, file(i, size))
		}
		return files
	}
	many := func(n int) []string { return sized(n, 1) }
	unlimited := &skills.Options{MaxFiles: math.MaxInt, MaxFileBytes: math.MaxInt64, MaxBytes: math.MaxInt64}
	hardly := &skills.Options{MaxFiles: math.MaxInt, MaxFileBytes: math.MaxInt64, MaxBytes: math.MaxInt64 - 1}
	const most = 16 << 20
	rest := int64(most - len(mainText))
	for _, tt := range []struct {
		name  string
		files []string // besides SKILL.md
		opts  *skills.Options
		limit string
		got   int64
	}{
		{"as many files as may be", many(511), nil, "", 0},
		{"one more", many(512), nil, "MaxFiles", 513},
		{"many for this host", many(2), &skills.Options{MaxFiles: 2}, "MaxFiles", 3},
		{"more for this host", many(600), &skills.Options{MaxFiles: 601}, "", 0},
		{"as large as may be", []string{file(0, rest)}, nil, "", 0},
		{"one byte more", []string{file(0, rest-1), file(1, 2)}, nil, "MaxBytes", most + 1},
		{"a large file", []string{file(0, most+1)}, nil, "MaxFileBytes", most + 1},
		{"the largest file", []string{file(0, 1<<53)}, nil, "MaxFileBytes", 1 << 53},
		{"a large file for this host", []string{file(0, 101)}, &skills.Options{MaxFileBytes: 100}, "MaxFileBytes", 101},
		{"large for this host", []string{file(0, 30)}, &skills.Options{MaxBytes: 100}, "MaxBytes", int64(len(mainText)) + 30},
		{"as large as can be counted", sized(1023, 1<<53), hardly, "", 0},
		{"larger than can be counted", sized(1024, 1<<53), hardly, "MaxBytes", math.MaxInt64},
		{"twice as large as can be counted", sized(2048, 1<<53), hardly, "MaxBytes", math.MaxInt64},
		{"larger than can be counted, without a limit", sized(1024, 1<<53), unlimited, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			files := append([]string{fileOf(main, mainText)}, tt.files...)
			s.entries = []string{entryOf(main, usual, "["+strings.Join(files, ",")+"]")}
			_, err := load(t, s, tt.opts)
			if tt.limit == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if failed := limit(t, err, tt.limit); failed.Got != tt.got || failed.Skill != main {
				t.Errorf("%+v", failed)
			}
			s.wasAsked(t)
		})
	}
}

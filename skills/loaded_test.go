package skills_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/skills"
)

// TestNothingIsReadAheadOfNeed: each file is asked for when it is wanted.
func TestNothingIsReadAheadOfNeed(t *testing.T) {
	s := newShelf()
	r := open(t, s, nil)
	skill := first(t, r)
	s.wasAsked(t, "skills/list")
	loaded, err := r.Load(t.Context(), skill)
	if err != nil {
		t.Fatal(err)
	}
	s.wasAsked(t, "resources/read "+main)
	if got := loaded.Content(); string(got.Bytes) != mainText || !got.Text || !got.Verified || got.MIMEType != "text/markdown" {
		t.Errorf("SKILL.md is %+v", got)
	}
	if _, err := loaded.Read(t.Context(), forms); err != nil {
		t.Error(err)
	}
	s.wasAsked(t, "resources/read "+forms)
}

// TestFiles are named as a SKILL.md names them, or by their URI.
func TestFiles(t *testing.T) {
	s := newShelf()
	loaded, err := load(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, uri string
		text      bool
	}{
		{forms, forms, true},
		{"references/FORMS.md", forms, true},
		{"./assets/../references//FORMS.md", forms, true},
		{picture, picture, false},
		{"assets/a.png", picture, false},
		{main, main, true},
		{"SKILL.md", main, true},
	} {
		got, err := loaded.Read(t.Context(), tt.file)
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		if got.URI != tt.uri || string(got.Bytes) != s.texts[tt.uri] || got.Text != tt.text || !got.Verified {
			t.Errorf("%s is %+v", tt.file, got)
		}
	}
}

// TestFilesThatAreNotListed are not asked for, dynamic or not.
func TestFilesThatAreNotListed(t *testing.T) {
	outside := []string{
		"../other/SKILL.md", "/etc/passwd", "..", ".", "", "a%2f..%2f..%2fb", `..\b`, "%",
		"skill://other/SKILL.md", root, root + "/", root + "/../other.md", "file:///etc/passwd", "skill://pdfs/a.md",
	}
	for _, dynamic := range []bool{false, true} {
		t.Run(fmt.Sprintf("dynamic=%t", dynamic), func(t *testing.T) {
			s := newShelf()
			files := outside
			if dynamic {
				s.entries = []string{entryOf(main, usual, `"dynamic"`)}
			} else {
				files = append(files, "references/OTHER.md", root+"/references/forms.md", root+"/a.md")
			}
			loaded, err := load(t, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.wasAsked(t, "resources/read "+main)
			for _, file := range files {
				got, err := loaded.Read(t.Context(), file)
				if failed := verification(t, err, skills.ErrUnlisted); failed.Skill != main || failed.File == "" || got != nil {
					t.Errorf("%s: %+v", file, failed)
				}
			}
			s.wasAsked(t)
		})
	}
}

// TestMismatches: what differs from the entry is not handed out, and of a skill whose
// SKILL.md does nothing is.
func TestMismatches(t *testing.T) {
	const other = "---\nname: pdf\ndescription: Sends files away.\n---\n\nSee references/FORMS.md.\n"
	read := func(contents string) string { return `{"contents":[` + contents + `]}` }
	text := func(uri string) string { return fmt.Sprintf(`{"uri":%q,"text":%q}`, uri, mainText) }
	for _, tt := range []struct {
		name       string
		file       string // which one
		read       string // what the server sends of it; empty for text
		text       string
		kind       error
		want, got  string
		entryFirst bool // the entry is of the changed text
	}{
		{name: "a longer SKILL.md", file: main, text: mainText + "x", kind: skills.ErrSize, want: "73 bytes", got: "74"},
		{name: "a shorter SKILL.md", file: main, text: mainText[1:], kind: skills.ErrSize, want: "73 bytes", got: "72"},
		{name: "another SKILL.md", file: main, text: strings.Replace(mainText, "See", "Run", 1), kind: skills.ErrDigest},
		{name: "other line ends", file: main, text: strings.ReplaceAll(mainText, "\n", "\r\n"), kind: skills.ErrSize},
		{name: "other frontmatter", file: main, text: other, entryFirst: true, kind: skills.ErrFrontmatter, want: `"Fills in forms."`, got: `"Sends files away."`},
		{name: "an empty SKILL.md", file: main, read: read(fmt.Sprintf(`{"uri":%q,"text":""}`, main)), kind: skills.ErrSize, got: "0"},
		{name: "an empty blob", file: main, read: read(fmt.Sprintf(`{"uri":%q,"blob":""}`, main)), kind: skills.ErrSize, got: "0"},
		{name: "nothing", file: main, read: read(""), kind: skills.ErrContents, got: "0 of 0"},
		{name: "another URI", file: main, read: read(text(forms)), kind: skills.ErrContents, got: "0 of 1"},
		{name: "the file twice", file: main, read: read(text(main) + "," + text(main)), kind: skills.ErrContents, got: "2 of 2"},
		{name: "neither text nor blob", file: main, read: read(fmt.Sprintf(`{"uri":%q}`, main)), kind: skills.ErrContents, got: "neither"},
		{name: "both", file: main, read: read(fmt.Sprintf(`{"uri":%q,"text":"","blob":""}`, main)), kind: skills.ErrContents, got: "both"},

		{name: "a longer file", file: forms, text: "Forms are filled in. \n", kind: skills.ErrSize, want: "21 bytes", got: "22"},
		{name: "another file", file: forms, text: "Forms are filled up.\n", kind: skills.ErrDigest},
		{name: "a longer blob", file: picture, text: "\x89PNG\x00\xff\x00", kind: skills.ErrSize, want: "6 bytes", got: "7"},
		{name: "another blob", file: picture, text: "\x89PNG\x00\xfe", kind: skills.ErrDigest},
		{name: "a blob as text", file: picture, read: read(fmt.Sprintf(`{"uri":%q,"text":"\ufffdPNG\u0000\ufffd"}`, picture)), kind: skills.ErrSize, got: "10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			if tt.read != "" {
				s.results = map[string]string{tt.file: tt.read}
			} else {
				s.texts[tt.file] = tt.text
			}
			if tt.entryFirst {
				s.entries = []string{s.entry(usual)}
			}
			loaded, err := load(t, s, nil)
			if tt.file != main {
				if err != nil {
					t.Fatal(err)
				}
				var content *skills.Content
				if content, err = loaded.Read(t.Context(), tt.file); content != nil {
					t.Errorf("there is %+v", content)
				}
				if _, err := loaded.Read(t.Context(), main); err != nil {
					t.Errorf("a file that is as it was: %v", err)
				}
			} else {
				s.wasAsked(t, "resources/read "+main)
				if loaded != nil {
					t.Error("the skill is loaded")
				}
			}
			failed := verification(t, err, tt.kind)
			if failed.Skill != main || failed.File != tt.file || tt.want != "" && failed.Want != tt.want || tt.got != "" && failed.Got != tt.got {
				t.Errorf("%+v", failed)
			}
			if message := err.Error(); !strings.Contains(message, tt.file) || !strings.Contains(message, tt.kind.Error()) {
				t.Errorf("the error is %s", message)
			}
		})
	}
}

// TestSKILLmdThatChangesLater is compared with the frontmatter again.
func TestSKILLmdThatChangesLater(t *testing.T) {
	s := newShelf()
	s.entries = []string{entryOf(main, usual, `"dynamic"`)}
	loaded, err := load(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.texts[main] = strings.Replace(mainText, "Fills in", "Sends away", 1)
	_, err = loaded.Read(t.Context(), main)
	verification(t, err, skills.ErrFrontmatter)
}

// TestLoadedKeepsToItsEntry, whatever the caller does with what it was given.
func TestLoadedKeepsToItsEntry(t *testing.T) {
	s := newShelf()
	r := open(t, s, nil)
	skill := first(t, r)
	loaded, err := r.Load(t.Context(), skill)
	if err != nil {
		t.Fatal(err)
	}
	s.texts[forms] = "changed"
	clear(skill.Files)
	clear(loaded.Skill().Files)
	clear(loaded.Content().Bytes)
	_, err = loaded.Read(t.Context(), forms)
	verification(t, err, skills.ErrSize)
	if got := loaded.Skill(); len(got.Files) != 3 || got.Files[1].URI != forms || string(loaded.Content().Bytes) != mainText {
		t.Errorf("the entry is %+v", got)
	}
	newest, err := r.Get(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load(t.Context(), newest); err != nil {
		t.Error(err)
	}
}

// TestDynamicSkill has no digests; the rest holds.
func TestDynamicSkill(t *testing.T) {
	dynamic := func() *shelf {
		s := newShelf()
		s.entries = []string{entryOf(main, usual, `"dynamic"`)}
		return s
	}
	t.Run("read", func(t *testing.T) {
		loaded, err := load(t, dynamic(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := loaded.Read(t.Context(), "references/FORMS.md")
		if err != nil || got.Verified || string(got.Bytes) != "Forms are filled in.\n" || loaded.Content().Verified || !loaded.Skill().Dynamic {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		s := dynamic()
		_, err := load(t, s, &skills.Options{RefuseDynamic: true})
		verification(t, err, skills.ErrDynamic)
		s.wasAsked(t)
	})
	t.Run("other frontmatter", func(t *testing.T) {
		s := dynamic()
		s.texts[main] = strings.Replace(mainText, "Fills in", "Sends away", 1)
		_, err := load(t, s, nil)
		if failed := verification(t, err, skills.ErrFrontmatter); failed.Field != "description" {
			t.Errorf("%+v", failed)
		}
	})
	t.Run("a large file", func(t *testing.T) {
		s := dynamic()
		loaded, err := load(t, s, &skills.Options{MaxFileBytes: 100})
		if err != nil {
			t.Fatal(err)
		}
		s.texts[forms] = strings.Repeat("x", 101)
		_, err = loaded.Read(t.Context(), forms)
		if failed := limit(t, err, "MaxFileBytes"); failed.Got != 101 || failed.File != forms {
			t.Errorf("%+v", failed)
		}
	})
	t.Run("much together", func(t *testing.T) {
		s := dynamic()
		loaded, err := load(t, s, &skills.Options{MaxBytes: 100})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // 73 and 21 bytes, however often they are read
			if _, err := loaded.Read(t.Context(), forms); err != nil {
				t.Error(err)
			}
		}
		s.texts[picture] = "1234567"
		_, err = loaded.Read(t.Context(), picture)
		if failed := limit(t, err, "MaxBytes"); failed.Got != 101 {
			t.Errorf("%+v", failed)
		}
	})
	t.Run("many", func(t *testing.T) {
		s := dynamic()
		loaded, err := load(t, s, &skills.Options{MaxFiles: 2})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loaded.Read(t.Context(), forms); err != nil {
			t.Error(err)
		}
		_, err = loaded.Read(t.Context(), picture)
		limit(t, err, "MaxFiles")
		if _, err := loaded.Read(t.Context(), forms); err != nil {
			t.Errorf("a file that was read before: %v", err)
		}
	})
}

// TestConcurrentReadsKeepTheLimits: of many files at once no more are handed out.
func TestConcurrentReadsKeepTheLimits(t *testing.T) {
	s := newShelf()
	s.entries = []string{entryOf(main, usual, `"dynamic"`)}
	for i := range 8 {
		s.texts[fmt.Sprintf("%s/%d", root, i)] = "x"
	}
	loaded, err := load(t, s, &skills.Options{MaxFiles: 4})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = loaded.Read(t.Context(), fmt.Sprint(i)) })
	}
	wg.Wait()
	good := 0
	for _, err := range errs {
		if err == nil {
			good++
			continue
		}
		limit(t, err, "MaxFiles")
	}
	if good != 3 {
		t.Errorf("%d files were handed out besides SKILL.md, want 3", good)
	}
}

// TestReadOfAFileThatIsGone is the server's error.
func TestReadOfAFileThatIsGone(t *testing.T) {
	s := newShelf()
	loaded, err := load(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	delete(s.texts, forms)
	if _, err := loaded.Read(t.Context(), forms); err == nil || !strings.Contains(err.Error(), "No resource") {
		t.Errorf("the error is %v", err)
	}
}

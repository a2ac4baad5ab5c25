package skills_test

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/skills"
)

// TestEntriesThatAreNotValid are listed and not loaded, whatever is wrong with them.
func TestEntriesThatAreNotValid(t *testing.T) {
	const digest = `"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"`
	own := fileOf(main, mainText)
	with := func(files string) string { return entryOf(main, usual, "["+own+","+files+"]") }
	under := func(uri string) string {
		return entryOf(uri, usual, "["+fileOf(uri, mainText)+"]")
	}
	for _, tt := range []struct{ name, entry, field string }{
		{"no object", `"x"`, ""},
		{"a number for a URI", `{"uri":7}`, ""},
		{"a name that is there twice", `{"uri":"a","uri":"b"}`, ""},
		{"no URI", `{"frontmatter":{},"resources":"dynamic"}`, "uri"},
		{"a URI without a scheme", under("pdf/SKILL.md"), "uri"},
		{"a URI of another file", under(root + "/skill.md"), "uri"},
		{"a URI without a skill", under("skill://SKILL.md"), "uri"},
		{"a URI with dots", under("skill://a/../pdf/SKILL.md"), "uri"},
		{"a URI with escaped dots", under("skill://a/%2e%2E/pdf/SKILL.md"), "uri"},
		{"a URI with half an escape", under("skill://a%/pdf/SKILL.md"), "uri"},
		{"a URI with an empty part", under("skill:///pdf/SKILL.md"), "uri"},

		{"no frontmatter", `{"uri":"` + main + `","resources":"dynamic"}`, "frontmatter"},
		{"frontmatter that is null", entryOf(main, `null`, `"dynamic"`), "frontmatter"},
		{"frontmatter that is a list", entryOf(main, `[]`, `"dynamic"`), "frontmatter"},
		{"frontmatter with a field twice", entryOf(main, `{"name":"pdf","name":"x","description":"x"}`, `"dynamic"`), ""},
		{"a number that is none", entryOf(main, `{"name":"pdf","description":"x","n":1e999}`, `"dynamic"`), "frontmatter"},
		{"no name", entryOf(main, `{"description":"x"}`, `"dynamic"`), "frontmatter.name"},
		{"a number for a name", entryOf(main, `{"name":7,"description":"x"}`, `"dynamic"`), "frontmatter.name"},
		{"another name", entryOf(main, `{"name":"pdfs","description":"x"}`, `"dynamic"`), "frontmatter.name"},
		{"a name in capitals", entryOf("skill://PDF/SKILL.md", `{"name":"PDF","description":"x"}`, `"dynamic"`), "frontmatter.name"},
		{"a name with two hyphens", entryOf("skill://a--b/SKILL.md", `{"name":"a--b","description":"x"}`, `"dynamic"`), "frontmatter.name"},
		{"a name that is too long", entryOf("skill://"+strings.Repeat("a", 65)+"/SKILL.md", `{"name":"`+strings.Repeat("a", 65)+`","description":"x"}`, `"dynamic"`), "frontmatter.name"},
		{"no description", entryOf(main, `{"name":"pdf"}`, `"dynamic"`), "frontmatter.description"},
		{"an empty description", entryOf(main, `{"name":"pdf","description":""}`, `"dynamic"`), "frontmatter.description"},

		{"no resources", `{"uri":"` + main + `","frontmatter":` + usual + `}`, "resources"},
		{"resources that are null", entryOf(main, usual, `null`), "resources"},
		{"resources that are something else", entryOf(main, usual, `"static"`), "resources"},
		{"no files", entryOf(main, usual, `[]`), "resources"},
		{"no SKILL.md among the files", entryOf(main, usual, `[`+fileOf(forms, "x")+`]`), "resources"},
		{"a file twice", with(own), "resources[1].uri"},
		{"a file of another skill", with(fileOf("skill://pdfs/a.md", "x")), "resources[1].uri"},
		{"a file elsewhere", with(fileOf("file:///etc/passwd", "x")), "resources[1].uri"},
		{"a file above", with(fileOf(root+"/../a.md", "x")), "resources[1].uri"},
		{"a file above, escaped", with(fileOf(root+"/x%2f..%2F..%2fa.md", "x")), "resources[1].uri"},
		{"a file above, for Windows", with(fileOf(root+"/%5c..%5Ca.md", "x")), "resources[1].uri"},
		{"a file with a zero byte", with(fileOf(root+"/a%00.md", "x")), "resources[1].uri"},
		{"the folder", with(fileOf(root+"/", "x")), "resources[1].uri"},
		{"a file without a URI", with(`{` + digest + `,"size":1}`), "resources[1].uri"},
		{"a file without a digest", with(`{"uri":"` + forms + `","size":1}`), "resources[1].digest"},
		{"a digest of another kind", with(`{"uri":"` + forms + `","digest":"md5:00","size":1}`), "resources[1].digest"},
		{"a digest in capitals", with(strings.ReplaceAll(`{"uri":"`+forms+`",`+digest+`,"size":1}`, "0000", "ABCD")), "resources[1].digest"},
		{"a short digest", with(`{"uri":"` + forms + `","digest":"sha256:00","size":1}`), "resources[1].digest"},
		{"a file without a size", with(`{"uri":"` + forms + `",` + digest + `}`), "resources[1].size"},
		{"a negative size", with(`{"uri":"` + forms + `",` + digest + `,"size":-1}`), "resources[1].size"},
		{"half a byte", with(`{"uri":"` + forms + `",` + digest + `,"size":0.5}`), "resources[1].size"},
		{"a size beyond all bounds", with(`{"uri":"` + forms + `",` + digest + `,"size":1e300}`), "resources[1].size"},
		{"a text for a size", with(`{"uri":"` + forms + `",` + digest + `,"size":"1"}`), "resources"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			s.entries = []string{tt.entry}
			loaded, err := load(t, s, nil)
			if failed := verification(t, err, skills.ErrEntry); failed.Field != tt.field || loaded != nil {
				t.Errorf("the field is %q, want %q: %v", failed.Field, tt.field, err)
			}
			s.wasAsked(t)
		})
	}
}

// TestEntriesThatAreValid are loaded.
func TestEntriesThatAreValid(t *testing.T) {
	for _, uri := range []string{
		"skill://pdf/SKILL.md", "skill://acme/billing/pdf/SKILL.md", "github://a/b.c/skills/pdf/SKILL.md",
		"skill://my%20skills/pdf/SKILL.md",
	} {
		t.Run(uri, func(t *testing.T) {
			s := newShelf()
			s.texts[uri] = mainText
			s.entries = []string{entryOf(uri, usual, `[`+fileOf(uri, mainText)+`]`)}
			if _, err := load(t, s, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSizeOfAnotherForm: a number of bytes may be written as JSON numbers are.
func TestSizeOfAnotherForm(t *testing.T) {
	s := newShelf()
	s.entries = []string{strings.ReplaceAll(s.entries[0], `"size":21`, `"size":2.1e1`)}
	if _, err := load(t, s, nil); err != nil {
		t.Error(err)
	}
}

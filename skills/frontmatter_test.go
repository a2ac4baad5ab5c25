package skills_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/skills"
)

// loadWith loads a dynamic skill whose entry and SKILL.md have these fields besides name
// and description.
func loadWith(t testing.TB, entry, yaml string) error {
	t.Helper()
	frontmatter := `{"name":"pdf","description":"x"`
	if entry != "" {
		frontmatter += "," + entry
	}
	return loadFile(t, frontmatter+"}", "---\nname: pdf\ndescription: x\n"+yaml+"\n---\nbody\n")
}

func loadFile(t testing.TB, frontmatter, file string) error {
	t.Helper()
	s := newShelf()
	s.entries = []string{entryOf(main, frontmatter, `"dynamic"`)}
	s.texts[main] = file
	_, err := load(t, s, nil)
	return err
}

// TestSameFrontmatter: values are the same in whatever form they are written.
func TestSameFrontmatter(t *testing.T) {
	for _, tt := range []struct{ name, entry, yaml string }{
		{"a text", `"a":"b c"`, `a: b c`},
		{"a text in quotes", `"a":"b: \"c\" \n"`, `a: "b: \"c\" \n"`},
		{"a text in single quotes", `"a":"it's"`, `a: 'it''s'`},
		{"a text of lines", `"a":"b\nc\n"`, "a: |\n  b\n  c"},
		{"a text that is folded", `"a":"b c"`, "a: >-\n  b\n  c"},
		{"a text over lines", `"a":"b c"`, "a: b\n  c"},
		{"text of the world", `"a":"\u4e16界 🙂"`, "a: 世界 🙂"},
		{"text that looks like something else", `"a":["yes","off","2026-07-28","1_000","1.2.3","0b1","TRUE!","12:30","+","-","."]`, "a: [yes, off, 2026-07-28, 1_000, 1.2.3, 0b1, TRUE!, 12:30, +, \"-\", .]"},
		{"text in quotes that looks like something else", `"a":["1","true","null",""]`, `a: ["1", 'true', "null", '']`},
		{"lines that look like something else", `"a":"12\n"`, "a: |\n  12"},
		{"whole numbers", `"a":[1,-2,10,8,255,0]`, `a: [1, -2, 010, 0o10, 0xff, -0]`},
		{"numbers", `"a":[1.0,1.5,100,0.5,5,1e3]`, `a: [1, 1.50, 1e2, .5, 5., +1000]`},
		{"a number beyond all integers", `"a":12345678901234567890`, `a: 12345678901234567890`},
		{"truth", `"a":[true,false,true,true]`, `a: [true, false, True, TRUE]`},
		{"nothing", `"a":[null,null,null]`, "a: [null, ~, NULL]"},
		{"a field without a value", `"a":null,"b":1`, "a:\nb: 1"},
		{"fields in another order", `"a":1,"b":{"d":1,"c":2}`, "b:\n  c: 2\n  d: 1\na: 1"},
		{"a list", `"a":["b",{"c":1,"d":[2]}]`, "a:\n- b\n- c: 1\n  d:\n  - 2"},
		{"flow", `"a":{"b":[1,{"c":"d"}]}`, `a: {b: [1, {c: d}]}`},
		{"a key that is no text", `"a":{"1":2,"true":3}`, "a:\n  1: 2\n  true: 3"},
		{"comments", `"a":1`, "# x\na: 1 # y"},
		{"an alias", `"a":[1,2],"b":[1,2],"c":{"d":[1,2]}`, "a: &x [1, 2]\nb: *x\nc:\n  d: *x"},
		{"tools", `"allowed-tools":"Bash(git:*) Read"`, "allowed-tools: Bash(git:*) Read"},
		{"deep", `"a":` + strings.Repeat("[", 15) + strings.Repeat("]", 15), "a: " + strings.Repeat("[", 15) + strings.Repeat("]", 15)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := loadWith(t, tt.entry, tt.yaml); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFrontmatterThatDiffers in any field.
func TestFrontmatterThatDiffers(t *testing.T) {
	for _, tt := range []struct{ name, entry, yaml, field, want, got string }{
		{"a field more", ``, `allowed-tools: Bash`, "allowed-tools", "nothing", `"Bash"`},
		{"a field less", `"license":"MIT"`, ``, "license", `"MIT"`, "nothing"},
		{"a field that is null", `"license":null`, ``, "license", "null", "nothing"},
		{"another text", `"a":"b"`, `a: B`, "a", `"b"`, `"B"`},
		{"a number for a text", `"version":"1.0"`, `version: 1.0`, "version", `"1.0"`, "1"},
		{"a text for a number", `"version":1`, `version: "1"`, "version", "1", `"1"`},
		{"truth for a text", `"a":"true"`, `a: true`, "a", `"true"`, "true"},
		{"a text for truth", `"a":true`, `a: yes`, "a", "true", `"yes"`},
		{"a text for nothing", `"a":null`, `a: ''`, "a", "null", `""`},
		{"deep within", `"metadata":{"b":[1,{"c":2}]}`, "metadata: {b: [1, {c: 3}]}", "metadata.b[1].c", "2", "3"},
		{"a field more within", `"metadata":{}`, "metadata: {b: 1}", "metadata.b", "nothing", "1"},
		{"an item more", `"a":[1]`, "a: [1, 2]", "a", "[1]", "[1,2]"},
		{"items in another order", `"a":[1,2]`, "a: [2, 1]", "a[0]", "1", "2"},
		{"an object for a list", `"a":[]`, "a: {}", "a", "[]", "{}"},
		{"a list for an object", `"a":{}`, "a: []", "a", "{}", "[]"},
		{"a list for a text", `"a":"x"`, "a: [x]", "a", `"x"`, `["x"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			failed := verification(t, loadWith(t, tt.entry, tt.yaml), skills.ErrFrontmatter)
			if failed.Field != tt.field || failed.Want != tt.want || failed.Got != tt.got || failed.File != main {
				t.Errorf("%+v", failed)
			}
		})
	}
}

// TestFrontmatterOfAllForms: where frontmatter begins and ends.
func TestFrontmatterOfAllForms(t *testing.T) {
	const fields = "name: pdf\ndescription: x\n"
	for _, tt := range []struct {
		name, file string
		good       bool
	}{
		{"usual", "---\n" + fields + "---\nbody", true},
		{"nothing after it", "---\n" + fields + "---", true},
		{"lines of Windows", strings.ReplaceAll("---\n"+fields+"---\nbody", "\n", "\r\n"), true},
		{"a byte order mark", "\ufeff---\n" + fields + "---\n", true},
		{"white space after the lines", "--- \n" + fields + "---\t \n", true},
		{"another line of it in the body", "---\n" + fields + "---\nbody\n---\nname: other\n---\n", true},
		{"an empty file", "", false},
		{"no frontmatter", "body", false},
		{"no end", "---\n" + fields, false},
		{"something before it", "\n---\n" + fields + "---\n", false},
		{"four hyphens", "----\n" + fields + "----\n", false},
		{"empty", "---\n---\n", false},
		{"comments only", "---\n# x\n---\n", false},
		{"a list", "---\n- name: pdf\n- description: x\n---\n", false},
		{"a text", "---\nname\n---\n", false},
		{"in the middle of a line", "---\nname: pdf\ndescription: x ---\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := loadFile(t, `{"name":"pdf","description":"x"}`, tt.file)
			if tt.good {
				if err != nil {
					t.Error(err)
				}
				return
			}
			verification(t, err, skills.ErrFrontmatter)
		})
	}
}

// TestHostileFrontmatter is refused, and soon.
func TestHostileFrontmatter(t *testing.T) {
	const size = skills.MaxFrontmatter - 100
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		n, next := string(rune('0'+i)), string(rune('1'+i))
		bomb.WriteString("a" + next + ": &a" + next + " [" + strings.Repeat("*a"+n+", ", 8) + "*a" + n + "]\n")
	}
	long := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	for _, tt := range []struct{ name, yaml, limit string }{
		{"aliases of aliases", bomb.String(), "MaxValues"},
		{"many values", "a: [" + strings.Repeat("1,", skills.MaxValues) + "1]", "MaxValues"},
		{"deep lists that end", "a: " + strings.Repeat("[", 33) + strings.Repeat("]", 33), "MaxDepth"},
		{"stairs", stairs(), "MaxDepth"},
		{"much", "a: " + strings.Repeat("x", skills.MaxFrontmatter), "MaxFrontmatter"},
		{"many lines", strings.Repeat("# x\n", skills.MaxFrontmatter), "MaxFrontmatter"},

		{"deep lists", "a: " + long("["), ""},
		{"deep objects", "a: " + long("{a: "), ""},
		{"deep lists on one line", "a:\n  " + long("- "), ""},
		{"deep keys", long("? "), ""},
		{"deep pairs in a list", "a: [" + long("a: "), ""},
		{"many anchors of one value", "a: " + long("&a "), ""},
		{"blank lines", "a: |\n" + long("\n"), ""},
		{"lines of white space", "a: >\n" + long("  \n"), ""},
		{"an alias of itself", "a: &a [*a]", ""},
		{"an alias of nothing", "a: *b", ""},
		{"a field twice", "a: 1\na: 2", ""},
		{"a field twice, in two forms", "a: 1\n\"a\": 2", ""},
		{"a field twice, as a number and as text", "1: a\n\"1\": b", ""},
		{"a field twice within", "a: {b: 1, b: 1}", ""},
		{"a name twice", "name: other", ""},
		{"a tag", "a: !!str 1", ""},
		{"a tag of its own", "a: !!python/object:os.system x", ""},
		{"a merge", "a: &a {b: 1}\nc:\n  <<: *a", ""},
		{"another document", "...\na: 1", ""},
		{"a directive", "%YAML 1.1", ""},
		{"no end of a list", "a: [1", ""},
		{"no end of a text", `a: "1`, ""},
		{"a tab", "a:\n\t- b", ""},
		{"infinity", "a: .inf", ""},
		{"no number", "a: .NaN", ""},
		{"a number beyond all bounds", "a: 1e999", ""},
		{"a number of many digits", "a: 0x" + strings.Repeat("f", 1000), ""},
		{"no UTF-8", "a: \xff", ""},
		{"a key that is a list", "? [a, b]\n: c", ""},
		{"a key that is nothing", "~: c", ""},
		{"commas", "a: [" + long(","), ""},
		{"tabs in quotes", `a: "` + strings.Repeat("\t", size/4) + `"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			s.entries = []string{entryOf(main, `{"name":"pdf","description":"x","a":7}`, `"dynamic"`)}
			s.results = nil
			file := "---\nname: pdf\ndescription: x\n" + tt.yaml + "\n---\nbody\n"
			if tt.name == "no UTF-8" {
				s.results = map[string]string{main: blobOf(main, file)}
			} else {
				s.texts[main] = file
			}
			_, err := load(t, s, nil)
			if tt.limit != "" {
				if failed := limit(t, err, tt.limit); failed.Skill != main {
					t.Errorf("%+v", failed)
				}
				return
			}
			failed := verification(t, err, skills.ErrFrontmatter)
			if n := max(len(err.Error()), len(failed.Got)); n > 2000 {
				t.Errorf("the error has %d bytes", n)
			}
			if differs := strings.HasPrefix(tt.yaml, "a: |") || strings.HasPrefix(tt.yaml, "a: >") || tt.name == "tabs in quotes"; (failed.Field != "") != differs {
				t.Errorf("it is read, and only differs: %v", err)
			}
		})
	}
}

// TestYAMLThatMeansMore than values is refused wherever it is, and not read as less.
func TestYAMLThatMeansMore(t *testing.T) {
	for _, yaml := range []string{
		"a: !x", "!x a: b", "a: [!!int \"1\"]", "a: !!binary aGk=", "<<: {a: 1}", "a: {<<: {b: 1}}", "a: 1\n...\nb: 2", "%TAG ! x",
	} {
		err := loadWith(t, "", yaml)
		if failed := verification(t, err, skills.ErrFrontmatter); failed.Field != "" {
			t.Errorf("%q: %v", yaml, err)
		}
	}
}

// stairs are maps within maps, each one column further to the right.
func stairs() string {
	var b strings.Builder
	for i := range 100 {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// FuzzFrontmatter: whatever a SKILL.md begins with, it is loaded or there is an error
// of one of the two kinds.
func FuzzFrontmatter(f *testing.F) {
	for _, seed := range []string{
		"a: 1", "a: &x [1, *x]", "a: |\n  b\n", "? a\n: b", "- a", "a: {b: [c, \"d\\n\"]}", "a: 'b", "<<: {}", "a: !x y", "a: >+\n\n\n",
	} {
		f.Add(seed)
	}
	s := newShelf()
	r := open(f, s, nil)
	skill := &skills.Skill{URI: main, Frontmatter: []byte(`{"name":"pdf","description":"x"}`), Dynamic: true}
	f.Fuzz(func(t *testing.T, yaml string) {
		s.results = map[string]string{main: blobOf(main, "---\nname: pdf\ndescription: x\n"+yaml+"\n---\n")}
		_, err := r.Load(t.Context(), skill)
		if err == nil || errors.Is(err, skills.ErrFrontmatter) {
			return
		}
		if _, ok := errors.AsType[*skills.LimitError](err); !ok {
			t.Error(err)
		}
	})
}

package skills

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// MaxFrontmatter is how many bytes the frontmatter of a SKILL.md may have.
const MaxFrontmatter = 32 << 10

var errNoFrontmatter = errors.New("the file does not begin with frontmatter between lines of ---")

// compare compares the frontmatter of a SKILL.md with the entry's, field by field
// (SEP-2640, Frontmatter Verification).
func (s *Skill) compare(file []byte) error {
	want, err := readJSON(s.Frontmatter)
	if err != nil {
		return s.wrong("frontmatter", "an object", err.Error())
	}
	got, err := readFrontmatter(file)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		limit.Skill, limit.File = s.URI, s.URI
		return limit
	}
	if err != nil {
		return &VerificationError{Skill: s.URI, File: s.URI, Want: "that of the entry", Got: err.Error(), Err: ErrFrontmatter}
	}
	if d := differ("", want, got); d != nil {
		return &VerificationError{Skill: s.URI, File: s.URI, Field: d.field, Want: d.want, Got: d.got, Err: ErrFrontmatter}
	}
	return nil
}

// readJSON returns an object as Go values.
func readJSON(raw mcp.JSON) (map[string]any, error) {
	var object map[string]any
	if len(raw) > 0 && raw[0] != '{' {
		return nil, errors.New("it is another value") // Decode would take [] as well
	}
	if err := raw.Decode(&object); err != nil {
		return nil, err
	}
	return object, nil
}

// readFrontmatter returns the frontmatter of a SKILL.md as the values of its JSON.
func readFrontmatter(file []byte) (map[string]any, error) {
	text, err := cutFrontmatter(file)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the frontmatter is not UTF-8")
	}
	value, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the frontmatter has no fields")
	}
	return object, nil
}

// cutFrontmatter returns what is between the first line of a file and the next one
// that are ---.
func cutFrontmatter(file []byte) ([]byte, error) {
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	first, rest, _ := bytes.Cut(file, []byte("\n"))
	if !isFence(first) {
		return nil, errNoFrontmatter
	}
	for at := 0; at < len(rest); {
		line, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		if isFence(line) {
			return rest[:at], nil
		}
		if at += len(line) + 1; at > MaxFrontmatter {
			return nil, &LimitError{Limit: "MaxFrontmatter", Max: MaxFrontmatter, Got: int64(at)}
		}
	}
	return nil, errNoFrontmatter
}

func isFence(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimRight(line[3:], " \t\r")) == 0
}

// A difference is where two values differ.
type difference struct{ field, want, got string }

// differ returns the first difference between two values that came from JSON, nil if
// they are the same.
func differ(field string, want, got any) *difference {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return differInFields(field, w, g)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			if d := differ(fmt.Sprintf("%s[%d]", field, i), w[i], g[i]); d != nil {
				return d
			}
		}
		return nil
	default:
		if want == got {
			return nil
		}
	}
	return &difference{field, textOf(want), textOf(got)}
}

func differInFields(field string, want, got map[string]any) *difference {
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if field != "" {
		field += "."
	}
	for _, name := range names {
		w, wanted := want[name]
		g, there := got[name]
		switch {
		case !there:
			return &difference{field + name, textOf(w), "nothing"}
		case !wanted:
			return &difference{field + name, "nothing", textOf(g)}
		}
		if d := differ(field+name, w, g); d != nil {
			return d
		}
	}
	return nil
}

// textOf returns a value as JSON, for an error.
func textOf(value any) string {
	raw, err := mcp.NewJSON(value)
	if err != nil {
		return err.Error()
	}
	return cut(string(raw), maxKept)
}

package skills

import (
	"fmt"
	"math"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Skill is the entry of a skill: what its server says of it. It belongs to the
// server that it is from: another server may have another skill under the same URI.
type Skill struct {
	URI         string   // that of its SKILL.md
	Frontmatter mcp.JSON // that of its SKILL.md, an object as it came
	// Files are all files of the skill, its SKILL.md included. What a user has
	// approved, they have approved of these.
	Files []File
	// Dynamic says that the files are made up when they are read, so that there
	// are no digests and Files is empty.
	Dynamic bool

	bad *VerificationError // what could not be read of the entry
}

// A File is one of a skill's files.
type File struct {
	URI    string
	Digest string // sha256: and 64 hexadecimal digits in lower case
	Size   int64  // in bytes
}

// Name returns the skill's name as the entry has it, which is a label: others may have
// the same one.
func (s *Skill) Name() string { return s.field("name") }

// Description returns the skill's description as the entry has it.
func (s *Skill) Description() string { return s.field("description") }

// field returns a field of the frontmatter, empty if it is no string.
func (s *Skill) field(name string) string {
	var fields mcp.Object
	var text string
	if s.Frontmatter.Decode(&fields) != nil || fields[name].Decode(&text) != nil {
		return ""
	}
	return text
}

// readSkill reads an entry, as far as it can be read.
func readSkill(raw []byte) Skill {
	var entry struct {
		URI         string   `json:"uri"`
		Frontmatter mcp.JSON `json:"frontmatter"`
		Resources   mcp.JSON `json:"resources"`
	}
	err := mcp.JSON(raw).Decode(&entry)
	s := Skill{URI: entry.URI, Frontmatter: entry.Frontmatter}
	if err != nil {
		s.bad = s.wrong("", "an entry", err.Error())
		return s
	}
	s.readFiles(entry.Resources)
	return s
}

// readFiles reads the resources of an entry.
func (s *Skill) readFiles(raw mcp.JSON) {
	if string(raw) == `"dynamic"` {
		s.Dynamic = true
		return
	}
	var files []struct {
		URI    string   `json:"uri"`
		Digest string   `json:"digest"`
		Size   *float64 `json:"size"`
	}
	if err := raw.Decode(&files); err != nil || len(files) == 0 {
		s.bad = s.wrong("resources", `a list of files, or "dynamic"`, string(raw))
		return
	}
	for i, f := range files {
		if f.Size == nil || *f.Size != math.Trunc(*f.Size) || *f.Size < 0 || *f.Size > 1<<53 {
			s.bad = s.wrong(fmt.Sprintf("resources[%d].size", i), "a number of bytes", sizeText(f.Size))
			return
		}
		s.Files = append(s.Files, File{URI: f.URI, Digest: f.Digest, Size: int64(*f.Size)})
	}
}

func sizeText(size *float64) string {
	if size == nil {
		return "none"
	}
	return fmt.Sprint(*size)
}

// Check returns a [*VerificationError] that is [ErrEntry] unless the entry is as the
// extension wants entries. A host lists what others are there though; [Reader.Load]
// refuses it.
func (s *Skill) Check() error {
	if s.bad != nil {
		return s.bad
	}
	root, ok := rootOf(s.URI)
	if !ok {
		return s.wrong("uri", "scheme://path/"+skillFile, s.URI)
	}
	if err := s.checkFrontmatter(root); err != nil {
		return err
	}
	if s.Dynamic {
		if len(s.Files) > 0 {
			return s.wrong("resources", "no files, since the skill is dynamic", fmt.Sprint(len(s.Files)))
		}
		return nil
	}
	return s.checkFiles(root)
}

// checkFrontmatter checks what the extension says of frontmatter.
func (s *Skill) checkFrontmatter(root string) error {
	if _, err := readJSON(s.Frontmatter); err != nil {
		return s.wrong("frontmatter", "an object", err.Error())
	}
	name := s.Name()
	if !isName(name) {
		return s.wrong("frontmatter.name", "1 to 64 lower-case letters, digits and single hyphens", name)
	}
	if last := root[strings.LastIndexByte(root, '/')+1:]; last != name {
		return s.wrong("frontmatter.name", last+", as in the URI", name)
	}
	if s.Description() == "" {
		return s.wrong("frontmatter.description", "a text", "none")
	}
	return nil
}

// checkFiles checks the list of files.
func (s *Skill) checkFiles(root string) error {
	seen := make(map[string]bool, len(s.Files))
	for i, f := range s.Files {
		at := fmt.Sprintf("resources[%d].", i)
		switch {
		case !isWithin(root, f.URI):
			return s.wrong(at+"uri", "something below "+root, f.URI)
		case seen[f.URI]:
			return s.wrong(at+"uri", "each file once", f.URI)
		case !isDigest(f.Digest):
			return s.wrong(at+"digest", "sha256: and 64 hexadecimal digits", f.Digest)
		case f.Size < 0:
			return s.wrong(at+"size", "a number of bytes", fmt.Sprint(f.Size))
		}
		seen[f.URI] = true
	}
	if !seen[s.URI] {
		return s.wrong("resources", "the skill's own "+skillFile+" among them", "none")
	}
	return nil
}

func (s *Skill) wrong(field, want, got string) *VerificationError {
	return &VerificationError{Skill: s.URI, Field: field, Want: cut(want, maxKept), Got: cut(got, maxKept), Err: ErrEntry}
}

package skills

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNotOffered says that a server does not declare the skills extension.
var ErrNotOffered = errors.New("the server does not declare the extension " + Extension)

// What a [VerificationError] is about.
var (
	// ErrEntry says that the entry of a skill is not valid.
	ErrEntry = errors.New("the entry is not valid")
	// ErrDynamic says that a skill without digests is not wanted
	// ([Options].RefuseDynamic).
	ErrDynamic = errors.New("the skill has no digests")
	// ErrUnlisted says that the entry has no such file.
	ErrUnlisted = errors.New("the entry does not list the file")
	// ErrContents says that what was read is not the contents of one file.
	ErrContents = errors.New("the result is not the file's contents")
	// ErrSize says that a file is not of the size that the entry says.
	ErrSize = errors.New("the size is another one")
	// ErrDigest says that a file has not the digest that the entry says.
	ErrDigest = errors.New("the digest is another one")
	// ErrFrontmatter says that the frontmatter of a SKILL.md is not what the entry
	// says, or none.
	ErrFrontmatter = errors.New("the frontmatter is another one")
)

// A VerificationError says that something about a skill is not as it must be, so
// that it is not handed out. [errors.Is] tells what: ErrEntry and its like.
type VerificationError struct {
	Skill string // its URI
	File  string // URI of the file; empty if it is not about one
	Field string // what of the entry or of the frontmatter, such as metadata.version; may be empty
	Want  string // what was expected
	Got   string // what was seen
	Err   error
}

// Error says what was expected where, and what was seen.
func (e *VerificationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "skill %s", shown(e.Skill))
	if e.File != "" && e.File != e.Skill {
		fmt.Fprintf(&b, ", file %s", shown(e.File))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Field != "" {
		fmt.Fprintf(&b, ": %s", shown(e.Field))
	}
	if e.Want != "" || e.Got != "" {
		fmt.Fprintf(&b, ": want %s, got %s", shown(e.Want), shown(e.Got))
	}
	return b.String()
}

// Unwrap returns what it is about.
func (e *VerificationError) Unwrap() error { return e.Err }

// A LimitError says that a skill is larger than it may be.
type LimitError struct {
	Skill string // its URI
	File  string // URI of the file; empty if it is about all of them
	Limit string // the name of the limit, such as MaxFiles
	Max   int64  // what it allows, in its unit: bytes, or how many
	Got   int64  // what was seen; of what was not read to its end, the first that is too much
}

// Error names the limit and what was seen.
func (e *LimitError) Error() string {
	file := ""
	if e.File != "" && e.File != e.Skill {
		file = ", file " + shown(e.File)
	}
	return fmt.Sprintf("skill %s%s: %d is more than the limit %s allows, which is %d", shown(e.Skill), file, e.Got, e.Limit, e.Max)
}

// How much of a server's texts an error keeps, and how much its message shows, in bytes.
const (
	maxKept  = 1000
	maxShown = 200
)

// cut returns at most the first bytes of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// shown returns a text for a message, with nothing in it that is not printed.
func shown(text string) string {
	text = cut(text, maxShown)
	if quoted := strconv.Quote(text); text == "" || quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

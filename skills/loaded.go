package skills

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// digestPrefix begins every digest: no other kind is known.
const digestPrefix = "sha256:"

// A Loaded is a skill whose SKILL.md has been read and is as its entry says. It keeps
// to that entry. It is safe for concurrent use.
type Loaded struct {
	reader  *Reader
	skill   Skill
	root    string
	files   map[string]File // of the entry, by URI
	content *Content

	mu   sync.Mutex
	read map[string]int64 // sizes of what was read of a dynamic skill, by URI; guarded by mu
}

// A Content is what a file of a skill holds.
type Content struct {
	URI      string
	MIMEType string // as the server says; empty if it does not
	Bytes    []byte
	// Text says that the server sent the file as text: Bytes are UTF-8 then.
	Text bool
	// Verified says that size and digest were compared, which is so for all
	// skills but dynamic ones.
	Verified bool
}

// Load reads the SKILL.md of a skill and compares it with the entry, of which it keeps
// a copy. It returns a [*VerificationError] if anything differs, a [*LimitError] if the
// skill is too large, and the errors of [client.Client.ReadResource].
func (r *Reader) Load(ctx context.Context, skill *Skill) (*Loaded, error) {
	if err := r.admit(skill); err != nil {
		return nil, err
	}
	root, _ := rootOf(skill.URI)
	l := &Loaded{
		reader: r, skill: copyOf(skill), root: root,
		files: make(map[string]File), read: make(map[string]int64),
	}
	for _, f := range l.skill.Files {
		l.files[f.URI] = f
	}
	content, err := l.fetch(ctx, l.skill.URI)
	if err != nil {
		return nil, err
	}
	l.content = content
	return l, nil
}

func copyOf(s *Skill) Skill {
	own := *s
	own.Files, own.Frontmatter = slices.Clone(s.Files), bytes.Clone(s.Frontmatter)
	return own
}

// Skill returns the entry that the skill was loaded by.
func (l *Loaded) Skill() *Skill {
	own := copyOf(&l.skill)
	return &own
}

// Content returns the SKILL.md, frontmatter included.
func (l *Loaded) Content() *Content {
	own := *l.content
	own.Bytes = bytes.Clone(own.Bytes)
	return &own
}

// Read reads a file of the skill: file is its URI, or its path from the skill's folder
// as it would be in a URI. A file that the entry does not list, or that is not in the
// skill's folder, is a [*VerificationError], and the server is not asked for it. Each
// Read asks the server anew.
func (l *Loaded) Read(ctx context.Context, file string) (*Content, error) {
	uri := file
	if !strings.Contains(file, "://") {
		uri = l.root + "/" + path.Clean(file)
	}
	_, listed := l.files[uri]
	if l.skill.Dynamic {
		listed = isWithin(l.root, uri)
	}
	if !listed {
		return nil, l.wrong(uri, ErrUnlisted, "", "")
	}
	return l.fetch(ctx, uri)
}

// fetch reads a file and compares it with what the entry says of it.
func (l *Loaded) fetch(ctx context.Context, uri string) (*Content, error) {
	result, err := l.reader.client.ReadResource(ctx, uri, nil)
	if err != nil {
		return nil, err
	}
	content, err := l.contentOf(uri, result)
	if err != nil {
		return nil, err
	}
	if err := l.verify(content); err != nil {
		return nil, err
	}
	if uri != l.skill.URI {
		return content, nil // nobody acts on the frontmatter of others (SEP-2640, Nested Skills)
	}
	if err := l.skill.compare(content.Bytes); err != nil {
		return nil, err
	}
	return content, nil
}

// contentOf returns what a result has of a file.
func (l *Loaded) contentOf(uri string, result *mcp.ReadResourceResult) (*Content, error) {
	var found []*mcp.ResourceContents
	for i := range result.Contents {
		if result.Contents[i].URI == uri {
			found = append(found, &result.Contents[i])
		}
	}
	if len(found) != 1 {
		got := fmt.Sprintf("%d of %d", len(found), len(result.Contents))
		return nil, l.wrong(uri, ErrContents, "one of this URI", got)
	}
	raw := found[0]
	content := &Content{URI: uri, MIMEType: raw.MIMEType}
	switch {
	case raw.Text != nil && raw.Blob != nil:
		return nil, l.wrong(uri, ErrContents, "text or a blob", "both")
	case raw.Text != nil:
		content.Bytes, content.Text = []byte(*raw.Text), true
	case raw.Blob != nil:
		content.Bytes = raw.Blob
	default:
		return nil, l.wrong(uri, ErrContents, "text or a blob", "neither")
	}
	return content, nil
}

// verify compares size and digest, or takes note of the size if there are none.
func (l *Loaded) verify(c *Content) error {
	size := int64(len(c.Bytes))
	if l.skill.Dynamic {
		return l.count(c.URI, size)
	}
	listed := l.files[c.URI]
	if size != listed.Size {
		return l.wrong(c.URI, ErrSize, fmt.Sprintf("%d bytes", listed.Size), fmt.Sprintf("%d", size))
	}
	sum := sha256.Sum256(c.Bytes)
	if digest := digestPrefix + hex.EncodeToString(sum[:]); digest != listed.Digest {
		return l.wrong(c.URI, ErrDigest, listed.Digest, digest)
	}
	c.Verified = true
	return nil
}

// count counts what is read of a skill whose entry says nothing of it.
func (l *Loaded) count(uri string, size int64) error {
	opts := &l.reader.opts
	if size > opts.MaxFileBytes {
		return &LimitError{Skill: l.skill.URI, File: uri, Limit: "MaxFileBytes", Max: opts.MaxFileBytes, Got: size}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.read[uri]; !again && len(l.read) >= opts.MaxFiles {
		return &LimitError{Skill: l.skill.URI, Limit: "MaxFiles", Max: int64(opts.MaxFiles), Got: int64(len(l.read)) + 1}
	}
	all := total{skill: l.skill.URI, max: opts.MaxBytes}
	for other, size := range l.read {
		if other == uri {
			continue
		}
		if err := all.add(size); err != nil {
			return err
		}
	}
	if err := all.add(size); err != nil {
		return err
	}
	l.read[uri] = size
	return nil
}

func (l *Loaded) wrong(uri string, err error, want, got string) error {
	return &VerificationError{Skill: l.skill.URI, File: uri, Want: want, Got: got, Err: err}
}

package skills

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Extension is the name under which a server declares the extension.
const Extension = "io.modelcontextprotocol/skills"

// Methods of the extension.
const (
	MethodList = "skills/list"
	MethodGet  = "skills/get"
)

// Defaults of [Options]. They are what every host must take at least (SEP-2640,
// Limits).
const (
	DefaultMaxFiles     = 512
	DefaultMaxFileBytes = 16 << 20
	DefaultMaxBytes     = 16 << 20
)

// Options configure a [Reader]. The zero value is usable.
type Options struct {
	// MaxFiles is how many files a skill may have, MaxFileBytes how large each of
	// them may be, and MaxBytes how large they may be together. A skill whose
	// entry says more is refused before anything of it is read; of a dynamic one
	// counts what has been read. Defaults DefaultMaxFiles, DefaultMaxFileBytes and
	// DefaultMaxBytes. A file comes as one message, a blob in base64, so that the
	// client's target bounds it, too: files of 16 MiB need more than its default
	// (MaxBody, MaxLine).
	MaxFiles     int
	MaxFileBytes int64
	MaxBytes     int64
	// RefuseDynamic has skills refused whose files have no digests.
	RefuseDynamic bool
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.MaxFiles <= 0 {
		d.MaxFiles = DefaultMaxFiles
	}
	if d.MaxFileBytes <= 0 {
		d.MaxFileBytes = DefaultMaxFileBytes
	}
	if d.MaxBytes <= 0 {
		d.MaxBytes = DefaultMaxBytes
	}
	return d
}

// A Reader reads the skills of one server. It is safe for concurrent use, and lives as
// long as its client.
type Reader struct {
	client *client.Client
	opts   Options
}

// Offered reports whether a server declares the extension. The client need not
// declare it.
func Offered(ctx context.Context, c *client.Client) (bool, error) {
	server, err := c.Server(ctx)
	if err != nil {
		return false, err
	}
	settings := jsonrpc.Trusted(server.Capabilities.Extensions[Extension])
	return settings.IsObject(), nil
}

// Open returns a Reader of a server's skills, and [ErrNotOffered] if the server does
// not declare that it has any: such a server is asked nothing. Opts may be nil.
func Open(ctx context.Context, c *client.Client, opts *Options) (*Reader, error) {
	offered, err := Offered(ctx, c)
	if err != nil {
		return nil, err
	}
	if !offered {
		return nil, ErrNotOffered
	}
	return &Reader{client: c, opts: opts.withDefaults()}, nil
}

// List yields the entries of the skills that the server lists, page by page as they
// are asked for, in the server's order; it reads no file. An error ends it. Entries
// that are not valid are among them ([Skill.Check]), and so are skills of the same
// name. A server need not list all that it has: [Reader.Get] finds others.
func (r *Reader) List(ctx context.Context) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		for page, err := range r.client.Pages(ctx, MethodList) {
			if err != nil {
				yield(nil, err)
				return
			}
			entries, _ := page.Lookup("skills")
			if len(entries) == 0 || entries[0] != '[' {
				yield(nil, badReply(MethodList, errors.New("the result has no list of skills")))
				return
			}
			for raw := range jsonrpc.Items(entries) {
				skill := readSkill(raw)
				if !yield(&skill, nil) {
					return
				}
			}
		}
	}
}

// Get returns the newest entry of the skill whose SKILL.md is at uri, listed or not.
// The server's error is a *jsonrpc.Error (-32602 if it has no such skill); an entry
// that is not valid is a [*VerificationError].
func (r *Reader) Get(ctx context.Context, uri string) (*Skill, error) {
	result, err := r.client.Call(ctx, MethodGet, map[string]string{"uri": uri}, nil)
	if err != nil {
		return nil, err
	}
	raw, ok := result.Lookup("skill")
	if !ok {
		return nil, badReply(MethodGet, errors.New("the result has no skill"))
	}
	skill := readSkill(raw)
	if err := skill.Check(); err != nil {
		return nil, err
	}
	if skill.URI != uri {
		return nil, &VerificationError{Skill: uri, Field: "uri", Want: uri, Got: skill.URI, Err: ErrEntry}
	}
	return &skill, nil
}

// admit returns why a skill must not be read, as far as its entry tells.
func (r *Reader) admit(s *Skill) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Dynamic && r.opts.RefuseDynamic {
		return &VerificationError{Skill: s.URI, Err: ErrDynamic}
	}
	if n := len(s.Files); n > r.opts.MaxFiles {
		return &LimitError{Skill: s.URI, Limit: "MaxFiles", Max: int64(r.opts.MaxFiles), Got: int64(n)}
	}
	all := total{skill: s.URI, max: r.opts.MaxBytes}
	for _, f := range s.Files {
		if f.Size > r.opts.MaxFileBytes {
			return &LimitError{Skill: s.URI, File: f.URI, Limit: "MaxFileBytes", Max: r.opts.MaxFileBytes, Got: f.Size}
		}
		if err := all.add(f.Size); err != nil {
			return err
		}
	}
	return nil
}

// A total adds up how large the files of a skill are.
type total struct {
	skill string
	bytes int64
	max   int64 // the limit MaxBytes
}

// add adds a file of a size that is not negative. The sum of what an entry says can be
// more than the largest number, and stays at that: as a limit, it is none.
func (t *total) add(size int64) error {
	t.bytes += min(size, math.MaxInt64-t.bytes)
	if t.bytes > t.max {
		return &LimitError{Skill: t.skill, Limit: "MaxBytes", Max: t.max, Got: t.bytes}
	}
	return nil
}

func badReply(method string, err error) error {
	return &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err}
}

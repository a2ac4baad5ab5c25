package mcp

import (
	"bytes"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A Stamp makes the edits of [EditsForModern] for requests on one connection. It
// remembers what the metadata of the last one became, since most clients make all
// their requests with the same. It is safe for concurrent use.
type Stamp struct {
	revision Revision
	last     atomic.Pointer[stamped]
}

// A stamped is the beginning of a _meta, up to the progress token's value.
type stamped struct {
	client, capabilities []byte
	level                Level
	head                 []byte
}

// NewStamp returns a stamp for servers of a modern revision.
func NewStamp(revision Revision) *Stamp { return &Stamp{revision: revision} }

// Edits returns the edits of [EditsForModern].
func (s *Stamp) Edits(req *Request, token jsonrpc.ID) []jsonrpc.Edit {
	_, hasMeta := req.Params.Lookup(metaName)
	// What is declared for clients of an era depends on more than head looks at.
	if hasMeta || token.IsZero() || req.Meta.Revision.Era() != NoEra || req.Meta.TakesTasks {
		return EditsForModern(req, s.revision, token)
	}
	return newMeta(s.head(&req.Meta), token)
}

// head returns the beginning of the _meta of a request that has none of its own.
func (s *Stamp) head(m *Metadata) []byte {
	last := s.last.Load()
	if last != nil && last.level == m.LogLevel && bytes.Equal(last.client, m.Client) && bytes.Equal(last.capabilities, m.Capabilities) {
		return last.head
	}
	// Copies: requests may lie in memory that is used again.
	now := &stamped{client: bytes.Clone(m.Client), capabilities: bytes.Clone(m.Capabilities), level: m.LogLevel}
	edits := EditsForModern(&Request{Meta: Metadata{Client: m.Client, Capabilities: m.Capabilities, LogLevel: m.LogLevel}},
		s.revision, jsonrpc.ID{})
	members := bytes.TrimSuffix(edits[0].Value, []byte("}"))
	now.head = append(bytes.Clone(members), `,"`+MetaProgressToken+`":`...)
	s.last.Store(now)
	return now.head
}

// newMeta returns the edit that adds a _meta: its beginning, up to the progress
// token's value, and that.
func newMeta(head []byte, token jsonrpc.ID) []jsonrpc.Edit {
	const usual = 216 // bytes of a _meta, in one piece of memory with the edit
	var meta struct {
		edits [1]jsonrpc.Edit
		raw   [usual]byte
	}
	raw := append(append(append(meta.raw[:0], head...), token.Raw()...), '}')
	meta.edits[0] = jsonrpc.Edit{Name: metaName, Value: raw}
	return meta.edits[:]
}

package transport

import (
	"bytes"
	"strconv"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// An Isolation says which clients share a connection to a legacy server.
type Isolation string

// The isolations. The zero value shares a connection unless the client can be
// asked something (elicitation, sampling, roots): such a client gets one of its
// own.
const (
	Automatic Isolation = ""
	Shared    Isolation = "shared"
	PerClient Isolation = "per-client"
	// Serialized shares a connection as [Shared] does, and lets the calls of one
	// client at a time through to it, for servers that keep what one client does
	// apart from another's neither in their state nor in what they ask.
	Serialized Isolation = "serialized"
)

// A side is what is known of the server with regard to clients of one era: a
// server that has both eras is spoken to in the client's.
type side struct {
	era   mcp.Era // of the server, as the last connection showed
	first *pooled // being made while the era is not known
}

// terms are what a client's requests say about the connection that they need.
type terms struct {
	legacy int           // 1 for a legacy client: the index of its side
	own    string        // key of the client's connection to a legacy server
	told   *mcp.Metadata // what the server is told of the client
}

// sharedKey is the key of the one connection to a modern server.
const sharedKey = ""

// terms returns what a client needs.
func (p *Pool) terms(meta *mcp.Metadata) terms {
	t := terms{told: &mcp.Metadata{
		Revision: meta.Revision, Principal: meta.Principal, Capabilities: bytes.Clone(meta.Capabilities),
	}}
	if meta.Revision.Era() == mcp.Legacy {
		t.legacy = 1
	}
	if t.told.Capabilities == nil {
		t.told.Capabilities = []byte("{}")
	}
	// With lengths, so that no name can reach into the next one.
	issuer, subject := meta.Principal.Issuer, meta.Principal.Subject
	t.own = strconv.Itoa(len(issuer)) + " " + strconv.Itoa(len(subject)) + " " + issuer + subject + string(t.told.Capabilities)
	if p.opts.Isolation == PerClient || p.opts.Isolation == Automatic && mcp.NeedsUser(t.told.Capabilities) {
		t.told.Client = bytes.Clone(meta.Client)
		t.own += "\x00" + meta.ClientKey()
	}
	return t
}

// keyFor returns where a client with its own key finds its connection. p.mu is
// held.
func (p *Pool) keyFor(t *terms) string {
	if p.sides[t.legacy].era == mcp.Modern {
		return sharedKey
	}
	return t.own
}

package mcp

import "slices"

// A Revision is a protocol version of MCP, named by its date.
type Revision string

// The revisions.
const (
	Revision20241105 Revision = "2024-11-05"
	Revision20250326 Revision = "2025-03-26"
	Revision20250618 Revision = "2025-06-18"
	Revision20251125 Revision = "2025-11-25"
	Revision20260728 Revision = "2026-07-28"

	NewestLegacy = Revision20251125
	NewestModern = Revision20260728
)

// An Era is a family of revisions that work alike.
type Era uint8

// The eras.
const (
	NoEra  Era = iota
	Legacy     // up to 2025-11-25: initialize, sessions, server-initiated requests
	Modern     // from 2026-07-28 on: each request carries its own metadata
)

// String returns the era's name.
func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return "unknown"
}

var (
	legacyRevisions = []Revision{Revision20251125, Revision20250618, Revision20250326, Revision20241105}
	modernRevisions = []Revision{Revision20260728}
)

// LegacyRevisions returns the legacy revisions, newest first.
func LegacyRevisions() []Revision { return slices.Clone(legacyRevisions) }

// ModernRevisions returns the modern revisions, newest first.
func ModernRevisions() []Revision { return slices.Clone(modernRevisions) }

// Era returns the era of a known revision, and NoEra for an unknown one.
func (r Revision) Era() Era {
	switch {
	case slices.Contains(modernRevisions, r):
		return Modern
	case slices.Contains(legacyRevisions, r):
		return Legacy
	}
	return NoEra
}

// NegotiateLegacy returns the revision that a server answers to an initialize
// request for r: r itself if it is a legacy one, else the newest legacy one not
// above it (2025-11-25, lifecycle, Version Negotiation).
func NegotiateLegacy(r Revision) Revision {
	for _, known := range legacyRevisions {
		if known <= r {
			return known
		}
	}
	return NewestLegacy
}

// PickModern returns the newest modern revision of ours among offered.
func PickModern(offered []Revision) (Revision, bool) {
	for _, r := range modernRevisions {
		if slices.Contains(offered, r) {
			return r, true
		}
	}
	return "", false
}

// PickLegacy returns the newest legacy revision of ours among offered.
func PickLegacy(offered []Revision) (Revision, bool) {
	for _, r := range legacyRevisions {
		if slices.Contains(offered, r) {
			return r, true
		}
	}
	return "", false
}

// HasTasks reports whether the revision has tasks as a capability.
func (r Revision) HasTasks() bool { return r == Revision20251125 }

// HasBatches reports whether JSON-RPC batches are part of the revision
// (2025-03-26, basic, Batching; removed in 2025-06-18).
func (r Revision) HasBatches() bool { return r == Revision20250326 }

// HasVersionHeader reports whether HTTP clients of the revision must send
// MCP-Protocol-Version.
func (r Revision) HasVersionHeader() bool { return r >= Revision20250618 }

// HasPolling reports whether event streams of the revision begin with an event
// that carries only an id, so that the server may close them and the client come
// back (2025-11-25, transports, Sending Messages; removed in 2026-07-28). Clients
// of older revisions take such an event for a message.
func (r Revision) HasPolling() bool { return r.Era() == Legacy && r >= Revision20251125 }

package mcp

// ListRootsResult is the answer to roots/list (2026-07-28, client/roots).
type ListRootsResult struct {
	Roots []Root `json:"roots"`
	Meta  Object `json:"_meta,omitzero"`
	Extra Object `json:",embed"` // other members
}

// A Root is a directory or file that a client lets a server work on.
type Root struct {
	URI   string `json:"uri"` // a file: URI
	Name  string `json:"name,omitzero"`
	Meta  Object `json:"_meta,omitzero"`
	Extra Object `json:",embed"` // other members
}

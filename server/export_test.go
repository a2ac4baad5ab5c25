package server

import (
	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Check checks a value as a tool's arguments are.
func Check(text, value []byte) error {
	s, err := schema.New(mcp.JSON(text))
	if err != nil {
		return err
	}
	return s.Check(value)
}

// Watched returns how many resources are watched.
func (s *Server) Watched() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.hub.watchers)
}

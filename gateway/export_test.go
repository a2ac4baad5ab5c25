package gateway

// Principals returns how many are remembered for what they have of limits.
func (g *Gateway) Principals() int {
	n := g.listens.principals()
	for _, b := range g.all() {
		n += b.calls.principals() + b.listings.principals()
	}
	return n
}

func (s *shared) principals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

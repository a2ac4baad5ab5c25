package checks

import (
	"strings"
	"sync"
)

// Seen is what has come from the server, and how it is answered. Its methods may
// be called concurrently.
type Seen struct {
	mu         sync.Mutex
	updated    []string                 // guarded by mu, like what follows
	changed    []string                 //
	logs       []string                 //
	resynced   []string                 //
	action     string                   // with which questions are answered
	onProgress map[string]func(float64) // by token
}

func newSeen() *Seen { return &Seen{action: "accept", onProgress: map[string]func(float64){}} }

// Updated notes that a resource has changed.
func (s *Seen) Updated(uri string) { s.note(&s.updated, uri) }

// Changed notes that a list has changed: "tools" or "resources".
func (s *Seen) Changed(kind string) { s.note(&s.changed, kind) }

// Resynced notes that a subscription goes on over another connection.
func (s *Seen) Resynced() { s.note(&s.resynced, "resynced") }

// Log notes a log message.
func (s *Seen) Log(data string) { s.note(&s.logs, data) }

// Progress notes how far the call of a token is.
func (s *Seen) Progress(token string, progress float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.onProgress[token]; f != nil {
		f(progress)
	}
}

// Action returns how the user answers a form.
func (s *Seen) Action() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.action
}

func (s *Seen) answer(action string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action = action
}

func (s *Seen) note(list *[]string, came string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, came)
}

func (s *Seen) forget(list *[]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = nil
}

// saw tells whether something that contains want has come.
func (s *Seen) saw(list *[]string, want string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, came := range *list {
		if strings.Contains(came, want) {
			return true
		}
	}
	return false
}

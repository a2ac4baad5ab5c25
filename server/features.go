package server

import (
	"encoding/base64"
	"slices"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// features are those of one kind, in the order of their names: so that lists
// have a stable order, and a cursor that names a feature is good after the
// feature has gone, and after a restart.
type features[T any] struct {
	// Set at construction.
	kind    string // the name of the list
	changed func() // is told of each change

	mu    sync.RWMutex
	items map[string]feature[T] // guarded by mu, like what follows
	names []string              // sorted
	were  bool                  // there has been a feature
	first [2]*mcp.Result        // the first page for legacy and modern clients, once it was asked for
}

// A feature is an entry of a list, and what is behind it.
type feature[T any] struct {
	entry []byte // as it is listed
	value *T
}

func (f *features[T]) init(kind string, changed func()) {
	f.kind, f.changed, f.items = kind, changed, make(map[string]feature[T])
}

// add adds a feature, or replaces the one of that name.
func (f *features[T]) add(name string, entry []byte, value *T) {
	f.mu.Lock()
	if _, there := f.items[name]; !there {
		i, _ := slices.BinarySearch(f.names, name)
		f.names = slices.Insert(f.names, i, name)
	}
	f.items[name] = feature[T]{entry, value}
	f.were = true
	clear(f.first[:])
	f.mu.Unlock()
	f.changed()
}

// remove removes features. Names of none are passed over.
func (f *features[T]) remove(names ...string) {
	f.mu.Lock()
	before := len(f.items)
	for _, name := range names {
		if _, there := f.items[name]; !there {
			continue
		}
		delete(f.items, name)
		i, _ := slices.BinarySearch(f.names, name)
		f.names = slices.Delete(f.names, i, i+1)
	}
	removed := len(f.items) < before
	clear(f.first[:])
	f.mu.Unlock()
	if removed {
		f.changed()
	}
}

func (f *features[T]) get(name string) *T {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.items[name].value
}

// all calls yield for each feature in order, until it returns false. The
// features must not be changed meanwhile by yield.
func (f *features[T]) all(yield func(name string, value *T) bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, name := range f.names {
		if !yield(name, f.items[name].value) {
			return
		}
	}
}

// used reports whether there are or were features of the kind.
func (f *features[T]) used() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.were
}

// list answers a request for a page of a list.
func list[T any](s *Server, f *features[T], req *mcp.Request) (mcp.Result, error) {
	raw, paged := req.Params.Lookup("cursor")
	if !paged || string(raw) == "null" {
		return f.firstPage(s, req), nil
	}
	text, _ := jsonrpc.Unquote(raw)
	after, ok := readCursor(f.kind, text)
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: cursor %.80s is not one of this list", raw)
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	i, found := slices.BinarySearch(f.names, after)
	if found {
		i++
	}
	return f.page(s, req, i), nil
}

// firstPage returns the first page, which is kept: clients mostly want no other.
func (f *features[T]) firstPage(s *Server, req *mcp.Request) mcp.Result {
	era := 0
	if isModern(req) {
		era = 1
	}
	f.mu.RLock()
	kept := f.first[era]
	f.mu.RUnlock()
	if kept != nil {
		return *kept
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	page := f.page(s, req, 0)
	page.Value = page.Indexed()
	f.first[era] = &page
	return page
}

// page returns the page that begins at a feature. f.mu is held.
func (f *features[T]) page(s *Server, req *mcp.Request, from int) mcp.Result {
	to := from + min(s.opts.PageSize, len(f.names)-from)
	dst := s.begin(nil, req)
	dst = appendName(dst, f.kind)
	dst = append(dst, '[')
	for i, name := range f.names[from:to] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, f.items[name].entry...)
	}
	dst = append(dst, ']')
	if to < len(f.names) {
		dst = appendName(dst, "nextCursor")
		dst = jsonrpc.AppendString(dst, cursor(f.kind, f.names[to-1]))
	}
	if isModern(req) {
		dst = appendHints(dst, s.opts.ListTTL, mcp.Public)
	}
	return mcp.RawResult(append(dst, '}'))
}

// cursor returns the cursor of the page after a feature.
func cursor(kind, name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + "\x00" + name))
}

// readCursor returns the name of the feature before a page of a list of the kind.
func readCursor(kind, cursor string) (name string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", false
	}
	of, name, ok := strings.Cut(string(raw), "\x00")
	return name, ok && of == kind
}

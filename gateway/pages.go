package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Bounds of the list of one backend, and of how long it is trusted, whatever the backend
// says. A list beyond a bound is not shown.
const (
	MaxPages     = 1000
	MaxItems     = 10_000
	MaxListBytes = 16 << 20
	MaxTTL       = time.Hour
)

// A list is what one backend has listed, whole. It does not change.
type list struct {
	items  []item
	bytes  int
	life   time.Duration // for how long it may be used again, 0 for not at all
	public bool          // by everybody
	sum    [sha256.Size]byte

	mu     sync.Mutex
	routes [2]*routes // by name, without and with a prefix; guarded by mu
}

// An item is a tool, prompt, resource or template as it came.
type item struct {
	name string
	key  []byte // the name's JSON
	raw  []byte
}

// equals reports whether two lists hold the same, in any order; nil holds nothing.
func (l *list) equals(other *list) bool {
	if other == nil || len(other.items) == 0 {
		return len(l.items) == 0
	}
	return l.sum == other.sum
}

// errEndless says that a list goes round in circles.
var errEndless = errors.New("the list has no end: a cursor comes again")

// list asks the backend for all pages of a list.
func (b *backend) list(ctx context.Context, k kind, meta *mcp.Metadata) (*list, error) {
	l := new(list)
	at := place{seen: make(map[string]bool)}
	for n := 0; !at.end; n++ {
		if n == MaxPages {
			return nil, tooLong(k, "MaxPages", n, MaxPages)
		}
		page, err := b.ask(ctx, newRequest(methods[k], at.params(), meta), mcp.NoCaller{})
		if n == 0 && isEmptyList(err) {
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		if at.isRepeated(&page) {
			break
		}
		if err := l.add(k, n == 0, &page); err != nil {
			return nil, err
		}
		if !at.advance(&page) {
			return nil, &mcp.CallError{Method: methods[k], Kind: mcp.BadReply, Outcome: mcp.Answered, Err: errEndless}
		}
	}
	l.seal()
	return l, nil
}

func tooLong(k kind, limit string, n, most int) error {
	return &mcp.CallError{
		Method: methods[k], Kind: mcp.LimitExceeded, Limit: limit, Outcome: mcp.Answered,
		Public: fmt.Sprintf("the list is over the limit of %d: it has %d or more", most, n),
	}
}

// A place is how far a list has been followed.
type place struct {
	cursor []byte // JSON; nil for the first page
	last   []byte // the page before, if cursor is the empty string
	seen   map[string]bool
	end    bool
}

func (p *place) params() jsonrpc.Value {
	return jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "cursor", Value: p.cursor})
}

// emptyCursor is one like any other (2026-07-28, server/utilities/pagination), and what
// older servers end their lists with.
const emptyCursor = `""`

// isRepeated reports whether a page is the one before once more, since its cursor meant
// that there is none.
func (p *place) isRepeated(page *mcp.Result) bool {
	return string(p.cursor) == emptyCursor && bytes.Equal(p.last, page.Raw())
}

// advance goes on to the page that one names. It returns false if that was there before.
func (p *place) advance(page *mcp.Result) bool {
	cursor, ok := page.Lookup("nextCursor")
	if !ok || string(cursor) == "null" {
		p.end = true
		return true
	}
	sum := sha256.Sum256(cursor)
	if p.seen[string(sum[:])] {
		p.end = true
		return string(cursor) == emptyCursor
	}
	p.seen[string(sum[:])] = true
	p.cursor, p.last = bytes.Clone(cursor), nil
	if string(cursor) == emptyCursor {
		p.last = bytes.Clone(page.Raw())
	}
	return true
}

// errNoList says that the answer to the request for a list is something else.
var errNoList = errors.New("the answer is no list")

// itemsOf returns the items of a page. Some servers leave out an empty list, or say null.
func itemsOf(k kind, page *mcp.Result) ([]byte, error) {
	raw, ok := page.Lookup(members[k])
	if page.Type() != mcp.Complete || ok && raw[0] != '[' && string(raw) != "null" {
		return nil, &mcp.CallError{Method: methods[k], Kind: mcp.BadReply, Outcome: mcp.Answered, Err: errNoList}
	}
	return raw, nil
}

// add adds a page.
func (l *list) add(k kind, first bool, page *mcp.Result) error {
	raw, err := itemsOf(k, page)
	if err != nil {
		return err
	}
	life, public := hints(page)
	if first {
		l.life, l.public = life, public
	}
	l.life, l.public = min(l.life, life), l.public && public
	for v := range jsonrpc.IndexedItems(raw) {
		key, _ := v.Lookup(keys[k])
		name, ok := jsonrpc.Unquote(key)
		if !ok {
			continue // nobody could name it
		}
		if len(l.items) == MaxItems {
			return tooLong(k, "MaxItems", MaxItems+1, MaxItems)
		}
		if l.bytes += len(v.Raw()) + len(key) + len(name); l.bytes > MaxListBytes {
			return tooLong(k, "MaxListBytes", l.bytes, MaxListBytes)
		}
		l.items = append(l.items, item{name: name, key: bytes.Clone(key), raw: bytes.Clone(v.Raw())})
	}
	return nil
}

// seal ends a list. Its order does not count for the sum: some servers list in another
// one each time.
func (l *list) seal() {
	sums := make([][sha256.Size]byte, len(l.items))
	for i := range l.items {
		sums[i] = sha256.Sum256(l.items[i].raw)
	}
	slices.SortFunc(sums, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for i := range sums {
		h.Write(sums[i][:])
	}
	h.Sum(l.sum[:0])
}

// hints returns for how long a page may be used again, and whether by everybody.
func hints(page *mcp.Result) (life time.Duration, public bool) {
	scope, _ := page.LookupString("cacheScope")
	raw, _ := page.Lookup("ttlMs")
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(ms > 0) {
		return 0, false
	}
	return time.Duration(min(ms, float64(MaxTTL/time.Millisecond)) * float64(time.Millisecond)), scope == string(mcp.Public)
}

// weight is what counts of a list as kept: its items, and these as they are shown.
func (l *list) weight() int { return 2 * l.bytes }

// routes are the names under which the items of a list are shown.
type routes struct {
	names []string       // of each item; empty for one that is not shown
	shown [][]byte       // each item as it is shown
	items map[string]int // by name
}

// routesOf returns the names of a list of a backend; prefix is empty if there is no
// other backend.
func (l *list) routesOf(k kind, prefix string, limit int) *routes {
	way := 0
	if prefix != "" {
		way = 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.routes[way] == nil {
		l.routes[way] = l.newRoutes(k, prefix, limit)
	}
	return l.routes[way]
}

func (l *list) newRoutes(k kind, prefix string, limit int) *routes {
	r := &routes{
		names: make([]string, len(l.items)), shown: make([][]byte, len(l.items)), items: make(map[string]int, len(l.items)),
	}
	for i := range l.items {
		it := &l.items[i]
		name := it.name
		if k.isNamed() {
			name = ExposedName(prefix, name, limit)
		}
		if _, there := r.items[name]; there {
			continue
		}
		r.names[i], r.items[name], r.shown[i] = name, i, it.raw
		if name != it.name {
			v := jsonrpc.Trusted(it.raw)
			r.shown[i] = jsonrpc.AppendEdited(make([]byte, 0, len(it.raw)+len(name)), &v,
				jsonrpc.Edit{Name: keys[k], Value: jsonrpc.AppendString(nil, name)})
		}
	}
	return r
}

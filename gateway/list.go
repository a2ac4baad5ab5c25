package gateway

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// pageBytes is how large a page of a merged list becomes, but for its last item. Clients
// and transports have limits for messages.
const pageBytes = 1 << 20

// list answers a request for a list: with the lists of all backends, in the order of
// their names, each in its own order. For pages after the first one the backends are not
// asked again.
func (g *Gateway) list(ctx context.Context, req *mcp.Request, k kind) (mcp.Result, error) {
	from, err := readPosition(&req.Params, k)
	if err != nil {
		return mcp.Result{}, err
	}
	v := g.viewOf(&req.Meta)
	if from.backend != "" {
		known := g.recall(v, k)
		if isForgotten(known, from) {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: the list that the cursor is of is not known any more; begin anew")
		}
		return g.page(known, k, from, req), nil
	}
	got, err := g.gather(ctx, v, k, &req.Meta)
	if err != nil {
		return mcp.Result{}, err
	}
	return g.page(got, k, from, req), nil
}

// isForgotten reports whether nothing is known of the list at whose items a page begins,
// though its backend is there: a client would take what is missing for removed.
func isForgotten(known []listed, from position) bool {
	return slices.ContainsFunc(known, func(l listed) bool { return l.backend.name == from.backend && l.list == nil })
}

// A position is where a page begins: at an item of a backend. It names the backend,
// so that pages of the others stay where they are when one comes or goes.
type position struct {
	backend string // empty for the beginning
	item    int
}

func (p position) cursor(k kind) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(int(k)) + " " + strconv.Itoa(p.item) + " " + p.backend))
}

func readPosition(params *jsonrpc.Value, k kind) (position, error) {
	raw, ok := params.Lookup("cursor")
	if !ok || string(raw) == "null" {
		return position{}, nil
	}
	text, _ := jsonrpc.Unquote(raw)
	plain, err := base64.RawURLEncoding.DecodeString(text)
	of, rest, _ := strings.Cut(string(plain), " ")
	number, backend, found := strings.Cut(rest, " ")
	n, wrong := strconv.Atoi(number)
	if err != nil || wrong != nil || !found || backend == "" || n < 0 || of != strconv.Itoa(int(k)) {
		return position{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: the cursor is not one of this list")
	}
	return position{backend, n}, nil
}

// A merger puts a page together.
type merger struct {
	kind kind
	from position
	used map[string]string // whose names are in use: backends by name

	items []byte
	next  position // where the page after this one begins
	full  bool

	conflicts []Conflict
}

// page returns the page of a merged list that begins at a position.
func (g *Gateway) page(got []listed, k kind, from position, req *mcp.Request) mcp.Result {
	size, n := 0, 0
	for _, l := range got {
		if l.list != nil {
			size, n = size+l.list.bytes, n+len(l.list.items)
		}
	}
	m := &merger{kind: k, from: from, used: make(map[string]string, n), items: make([]byte, 0, min(size+size/8, pageBytes))}
	for _, l := range got {
		if l.list == nil {
			continue
		}
		// As when it was asked: one that has gone since must not lend another one's name.
		m.add(l, l.list.routesOf(k, g.prefixAmong(len(got), l.backend), g.opts.MaxName))
		if m.full {
			break
		}
	}
	for _, c := range m.conflicts {
		g.noteConflict(c)
	}
	b := jsonrpc.NewBuilder(len(m.items) + 256)
	b.Add(members[k], func(dst []byte) []byte { return append(append(append(dst, '['), m.items...), ']') })
	if m.full {
		b.Add("nextCursor", func(dst []byte) []byte { return jsonrpc.AppendString(dst, m.next.cursor(k)) })
	}
	if req.Meta.Revision.Era() == mcp.Modern {
		addHints(&b, got, m.full || from.backend != "")
	}
	return mcp.Result{Value: b.Value()}
}

// add adds what of a backend's list belongs to the page.
func (m *merger) add(l listed, r *routes) {
	name := l.backend.name
	for i := range l.list.items {
		shown := r.names[i]
		if shown == "" {
			m.conflict(r, l, i, name)
			continue
		}
		if owner, taken := m.used[shown]; taken {
			m.conflict(r, l, i, owner)
			continue
		}
		m.used[shown] = name
		if name < m.from.backend || name == m.from.backend && i < m.from.item {
			continue
		}
		if len(m.items) > pageBytes {
			m.next, m.full = position{name, i}, true
			return
		}
		if len(m.items) > 0 {
			m.items = append(m.items, ',')
		}
		m.items = append(m.items, r.shown[i]...)
	}
}

func (m *merger) conflict(r *routes, l listed, i int, owner string) {
	shown := r.names[i]
	if shown == "" {
		shown = l.list.items[i].name
	}
	m.conflicts = append(m.conflicts, Conflict{List: methods[m.kind], Name: shown, Shown: owner, Hidden: l.backend.name})
}

// addHints adds for how long a page may be kept, and for whom: no longer than any of
// the lists in it, and not at all if something is missing (2026-07-28,
// server/utilities/caching). One of several pages is for nobody else, since all must be
// for the same, and later ones are put together of what is remembered.
func addHints(b *jsonrpc.Builder, got []listed, oneOfSeveral bool) {
	life, public := MaxTTL, len(got) > 0 && !oneOfSeveral
	for _, l := range got {
		if !l.whole {
			life, public = 0, false
			break
		}
		life = min(life, time.Until(l.until))
		public = public && l.list.public
	}
	if len(got) == 0 {
		life = 0
	}
	scope := mcp.Private
	if public && life > 0 {
		scope = mcp.Public
	}
	b.Add("resultType", func(dst []byte) []byte { return append(dst, `"`+mcp.Complete+`"`...) })
	b.Add("ttlMs", func(dst []byte) []byte { return strconv.AppendInt(dst, max(life.Milliseconds(), 0), 10) })
	b.Add("cacheScope", func(dst []byte) []byte { return jsonrpc.AppendString(dst, string(scope)) })
}

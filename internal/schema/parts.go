package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A part is a schema within a schema, as far as the work of checking goes: which
// parts are applied to the same value, and which to what the value holds.
type part struct {
	rank   int     // a part comes before those that it applies in place
	here   []*part // applied to the same value
	unique bool    // compares the items of an array with each other
	weight int     // what it looks up whatever the value

	pattern  int // size of the pattern of a text
	patterns int // of those that members' names are compared with

	properties map[string]*part
	members    []*part // applied to every member
	names      []*part // applied to every member's name
	prefix     []*part // applied to the items at their places
	items      []*part // applied to every item
}

// A graph is a schema as parts. It knows where references lead.
type graph struct {
	parts map[*jsonschema.Schema]*part
	order []*jsonschema.Schema // of the walk
	bases map[*jsonschema.Schema]*url.URL
	named map[string]*jsonschema.Schema   // by URI with fragment
	loose map[string][]*jsonschema.Schema // by anchor, for dynamic references
	ranks int

	references int // how many there are
}

var (
	errEndless = errors.New("it applies itself to the same value without end")
	errOutside = errors.New("refers to something outside the schema, and nothing is fetched")
)

// newGraph returns the parts of a schema, with root first among its order. A
// schema that refers to itself without going deeper into the value would be
// followed without end, and is an error.
func newGraph(root *jsonschema.Schema) (*graph, error) {
	g := &graph{
		parts: make(map[*jsonschema.Schema]*part),
		bases: make(map[*jsonschema.Schema]*url.URL),
		named: make(map[string]*jsonschema.Schema),
		loose: make(map[string][]*jsonschema.Schema),
	}
	if err := g.walk(root, &url.URL{}, ""); err != nil {
		return nil, err
	}
	for _, s := range g.order {
		if err := g.connect(s); err != nil {
			return nil, err
		}
	}
	state := make(map[*part]bool, len(g.parts))
	for _, s := range g.order {
		if !g.rankFrom(g.parts[s], state) {
			return nil, errEndless
		}
	}
	return g, nil
}

// A subschema is a schema that another one holds, and the steps to it.
type subschema struct {
	path   string // of a JSON Pointer
	schema *jsonschema.Schema
}

// subschemas returns what a schema holds, whether it is applied or only defined.
func subschemas(s *jsonschema.Schema) []subschema {
	var all []subschema
	one := func(name string, sub *jsonschema.Schema) {
		if sub != nil {
			all = append(all, subschema{"/" + name, sub})
		}
	}
	list := func(name string, subs []*jsonschema.Schema) {
		for i, sub := range subs {
			one(name+"/"+strconv.Itoa(i), sub)
		}
	}
	table := func(name string, subs map[string]*jsonschema.Schema) {
		for key, sub := range subs {
			one(name+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), sub)
		}
	}
	table("$defs", s.Defs)
	table("definitions", s.Definitions)
	table("dependencies", s.DependencySchemas)
	table("dependentSchemas", s.DependentSchemas)
	table("properties", s.Properties)
	table("patternProperties", s.PatternProperties)
	list("prefixItems", s.PrefixItems)
	list("items", s.ItemsArray)
	list("allOf", s.AllOf)
	list("anyOf", s.AnyOf)
	list("oneOf", s.OneOf)
	one("items", s.Items)
	one("additionalItems", s.AdditionalItems)
	one("contains", s.Contains)
	one("unevaluatedItems", s.UnevaluatedItems)
	one("additionalProperties", s.AdditionalProperties)
	one("propertyNames", s.PropertyNames)
	one("unevaluatedProperties", s.UnevaluatedProperties)
	one("not", s.Not)
	one("if", s.If)
	one("then", s.Then)
	one("else", s.Else)
	one("contentSchema", s.ContentSchema)
	return all
}

// walk takes up a schema and all that it holds, under their names.
func (g *graph) walk(s *jsonschema.Schema, base *url.URL, pointer string) error {
	if name, ok := strings.CutPrefix(s.ID, "#"); ok { // what draft-07 has for $anchor
		g.named[base.String()+"#"+name] = s
	} else if s.ID != "" {
		id, err := base.Parse(s.ID)
		if err != nil {
			return err
		}
		g.named[id.String()+"#"+pointer] = s
		base, pointer = &url.URL{Scheme: id.Scheme, Host: id.Host, Path: id.Path, Opaque: id.Opaque, RawQuery: id.RawQuery}, ""
	}
	p, err := newPart(s)
	if err != nil {
		return err
	}
	g.parts[s], g.bases[s] = p, base
	g.order = append(g.order, s)
	g.named[base.String()+"#"+pointer] = s
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor} {
		if anchor != "" {
			g.named[base.String()+"#"+anchor] = s
			g.loose[anchor] = append(g.loose[anchor], s)
		}
	}
	for _, sub := range subschemas(s) {
		if err := g.walk(sub.schema, base, pointer+sub.path); err != nil {
			return err
		}
	}
	return nil
}

// newPart returns a part without what it applies.
func newPart(s *jsonschema.Schema) (*part, error) {
	p := &part{unique: s.UniqueItems, weight: len(s.Enum) + len(s.Required) + len(s.Properties)}
	for _, names := range s.DependentRequired {
		p.weight += 1 + len(names)
	}
	for _, names := range s.DependencyStrings {
		p.weight += 1 + len(names)
	}
	size, err := patternSize(s.Pattern)
	p.pattern = size
	for pattern := range s.PatternProperties {
		if size, err = patternSize(pattern); err != nil {
			break
		}
		p.patterns += size
	}
	return p, err
}

// refer notes that p applies others by reference.
func (g *graph) refer(p *part, to ...*part) error {
	if g.references += len(to); g.references > MaxSchemaReferences {
		return fmt.Errorf("has more references than the limit MaxSchemaReferences of %d", MaxSchemaReferences)
	}
	p.here = append(p.here, to...)
	return nil
}

// target returns what a reference in s leads to.
func (g *graph) target(s *jsonschema.Schema, reference string) (*part, error) {
	uri, err := g.bases[s].Parse(reference)
	if err != nil {
		return nil, err
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	if to := g.named[uri.String()+"#"+fragment]; to != nil {
		return g.parts[to], nil
	}
	return nil, fmt.Errorf("%.100q %w", reference, errOutside)
}

// connect notes which parts the part of s applies.
func (g *graph) connect(s *jsonschema.Schema) error {
	p := g.parts[s]
	add := func(to *[]*part, subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				*to = append(*to, g.parts[sub])
			}
		}
	}
	add(&p.here, s.Not, s.If, s.Then, s.Else)
	add(&p.here, slices.Concat(s.AllOf, s.AnyOf, s.OneOf)...)
	for _, table := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
		for _, sub := range table {
			add(&p.here, sub)
		}
	}
	add(&p.items, s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems)
	add(&p.prefix, s.PrefixItems...)
	add(&p.prefix, s.ItemsArray...)
	add(&p.members, s.AdditionalProperties, s.UnevaluatedProperties)
	for _, sub := range s.PatternProperties {
		add(&p.members, sub)
	}
	add(&p.names, s.PropertyNames)
	p.properties = make(map[string]*part, len(s.Properties))
	for name, sub := range s.Properties {
		p.properties[name] = g.parts[sub]
	}
	if s.Ref != "" {
		to, err := g.target(s, s.Ref)
		if err != nil {
			return err
		}
		if err := g.refer(p, to); err != nil {
			return err
		}
	}
	if s.DynamicRef == "" {
		return nil
	}
	_, name, _ := strings.Cut(s.DynamicRef, "#")
	var to []*part
	add(&to, g.loose[name][:min(len(g.loose[name]), MaxSchemaReferences+1)]...)
	if one, err := g.target(s, s.DynamicRef); err == nil && to == nil {
		to = append(to, one)
	}
	return g.refer(p, to...)
}

// rankFrom gives p and what it applies in place their ranks, and reports whether
// that comes to an end. State says which parts have begun (false) and ended
// (true).
func (g *graph) rankFrom(p *part, state map[*part]bool) bool {
	if ended, begun := state[p]; begun {
		return ended
	}
	state[p] = false
	for _, next := range p.here {
		if !g.rankFrom(next, state) {
			return false
		}
	}
	state[p] = true
	g.ranks--
	p.rank = g.ranks
	return true
}

package skills

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of frontmatter.
const (
	// MaxValues is how many values it may have, with each alias counted as the
	// values that it stands for.
	MaxValues = 10000
	// MaxDepth is how many levels deep it may be.
	MaxDepth = 32
	// MaxBlankLines is how many lines in a row may be blank.
	MaxBlankLines = 64
)

// readYAML returns the values of a document as those of JSON: map[string]any, []any,
// string, float64, bool, and nil.
func readYAML(text []byte) (value any, err error) {
	defer func() {
		// The parser is somebody else's, and what it reads a stranger's.
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("no YAML that can be read: %.100v", p)
		}
	}()
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	if err := checkLines(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(text))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, reason(err)
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("%d documents of YAML", len(file.Docs))
	}
	var y yamlReader
	return y.read(file.Docs[0].Body, 1)
}

// reason returns a parser's error without the text that it is about.
func reason(err error) error {
	known, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return errors.New("no YAML that can be read")
	}
	if at := known.GetToken(); at != nil && at.Position != nil {
		return fmt.Errorf("line %d: %.200s", at.Position.Line, known.GetMessage())
	}
	return errors.New(known.GetMessage())
}

// checkLines bounds blank lines in a row, for which the lexer takes the square of
// their number.
func checkLines(text []byte) error {
	blank := 0
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			blank = 0
			continue
		}
		if blank++; blank > MaxBlankLines {
			return &LimitError{Limit: "MaxBlankLines", Max: MaxBlankLines, Got: int64(blank)}
		}
	}
	return nil
}

// checkTokens refuses what JSON has no form for, and bounds the depth before the
// parser goes down.
func checkTokens(tokens token.Tokens) error {
	var d depth
	for _, t := range tokens {
		switch t.Type {
		case token.TagType, token.MergeKeyType, token.DirectiveType, token.DocumentHeaderType, token.DocumentEndType:
			return fmt.Errorf("%.100q has no meaning here", t.Value)
		}
		if d.add(t); d.now() > MaxDepth {
			return &LimitError{Limit: "MaxDepth", Max: MaxDepth, Got: int64(d.now())}
		}
	}
	return nil
}

// A depth is how many levels deep the tokens so far can be.
type depth struct {
	columns []int // in which block collections that are open began
	flow    int   // flow collections that are open
	run     int   // in a flow collection, what goes one deeper since the last item began
}

func (d *depth) now() int { return len(d.columns) + d.flow + d.run }

func (d *depth) add(t *token.Token) {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.flow++
		d.run = 0
	case token.SequenceEndType, token.MappingEndType:
		d.flow = max(d.flow-1, 0)
		d.run = 0
	case token.CollectEntryType:
		d.run = 0
	case token.SequenceEntryType, token.MappingKeyType, token.AnchorType:
		d.down(t)
	case token.MappingValueType:
		if t.Prev != nil {
			d.down(t.Prev) // the key
			return
		}
		d.down(t)
	}
}

// down notes something that may be one level below what is left of it.
func (d *depth) down(t *token.Token) {
	if d.flow > 0 {
		d.run++
		return
	}
	column := t.Position.Column
	for n := len(d.columns); n > 0 && d.columns[n-1] >= column; n-- {
		d.columns = d.columns[:n-1]
	}
	d.columns = append(d.columns, column)
}

// A yamlReader turns a parsed document into values.
type yamlReader struct {
	values  int // so far
	anchors map[string]anchored
}

// anchored is a value that aliases stand for.
type anchored struct {
	value  any
	values int // in it
}

func (y *yamlReader) spend(values int) error {
	if y.values += values; y.values > MaxValues {
		return &LimitError{Limit: "MaxValues", Max: MaxValues, Got: int64(y.values)}
	}
	return nil
}

func (y *yamlReader) read(node ast.Node, level int) (any, error) {
	if level > MaxDepth {
		return nil, &LimitError{Limit: "MaxDepth", Max: MaxDepth, Got: int64(level)}
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		return y.anchor(n, level)
	case *ast.AliasNode:
		return y.alias(n)
	}
	if err := y.spend(1); err != nil {
		return nil, err
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return y.fields(n.Values, level)
	case *ast.MappingValueNode:
		return y.fields([]*ast.MappingValueNode{n}, level)
	case *ast.SequenceNode:
		items := make([]any, len(n.Values))
		for i, item := range n.Values {
			var err error
			if items[i], err = y.read(item, level+1); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return scalar(node)
}

func (y *yamlReader) anchor(n *ast.AnchorNode, level int) (any, error) {
	before := y.values
	value, err := y.read(n.Value, level+1)
	if err != nil {
		return nil, err
	}
	if y.anchors == nil {
		y.anchors = make(map[string]anchored)
	}
	y.anchors[n.Name.GetToken().Value] = anchored{value, y.values - before} // not before: it is not in itself
	return value, nil
}

func (y *yamlReader) alias(n *ast.AliasNode) (any, error) {
	name := n.Value.GetToken().Value
	known, ok := y.anchors[name]
	if !ok {
		return nil, fmt.Errorf("the alias %.100q stands for nothing", name)
	}
	return known.value, y.spend(known.values)
}

func (y *yamlReader) fields(pairs []*ast.MappingValueNode, level int) (any, error) {
	object := make(map[string]any, len(pairs))
	for _, pair := range pairs {
		name, err := nameOf(pair.Key)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the field %.100q is there twice", name)
		}
		if object[name], err = y.read(pair.Value, level+1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// nameOf returns the name that a key has in JSON.
func nameOf(key ast.Node) (string, error) {
	if asked, ok := key.(*ast.MappingKeyNode); ok {
		key = asked.Value
	}
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return k.GetToken().Value, nil
	}
	return "", errors.New("a field whose name is no text")
}

// scalar returns the value of a scalar by the core schema.
func scalar(node ast.Node) (any, error) {
	switch n := node.(type) {
	case nil, *ast.NullNode:
		return nil, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.StringNode:
		if n.Token.Type != token.StringType {
			return n.Value, nil // it is quoted
		}
		return plain(n.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return plain(n.GetToken().Value)
	}
	return nil, fmt.Errorf("a value of a kind that JSON has not: %s", node.Type())
}

// Numbers of the core schema (YAML 1.2.2, 10.3.2).
var (
	decimal  = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	notJSON  = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	unsigned = regexp.MustCompile(`^0(x[0-9a-fA-F]+|o[0-7]+)$`)
)

// plain returns the value of a scalar without quotes that is neither null nor a boolean.
func plain(text string) (any, error) {
	switch {
	case unsigned.MatchString(text):
		n, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%.100q is no number that can be read", text)
		}
		return float64(n), nil
	case decimal.MatchString(text):
		n, err := strconv.ParseFloat(strings.TrimPrefix(text, "+"), 64)
		if err != nil || math.IsInf(n, 0) {
			return nil, fmt.Errorf("%.100q is no number that can be read", text)
		}
		return n, nil
	case notJSON.MatchString(text):
		return nil, fmt.Errorf("%q is no number of JSON", text)
	}
	return text, nil
}

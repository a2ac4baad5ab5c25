package skills

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of frontmatter.
const (
	// MaxValues is how many values it may have, with each alias counted as the
	// values that it stands for.
	MaxValues = 10000
	// MaxDepth is how many levels deep it may be.
	MaxDepth = 32
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
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var first, more yaml.Node
	switch err := documents.Decode(&first); {
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, reason(err)
	}
	if err := documents.Decode(&more); err != io.EOF {
		return nil, errors.New("more than one document of YAML")
	}
	var y yamlReader
	return y.read(first.Content[0], 1)
}

// reason returns a parser's error, of which a text is a part now and then.
func reason(err error) error {
	return fmt.Errorf("no YAML that can be read: %.200s", strings.TrimPrefix(err.Error(), "yaml: "))
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

func (y *yamlReader) read(n *yaml.Node, level int) (any, error) {
	switch {
	case level > MaxDepth:
		return nil, &LimitError{Limit: "MaxDepth", Max: MaxDepth, Got: int64(level)}
	case n.Kind == yaml.AliasNode:
		return y.alias(n)
	case n.Style&yaml.TaggedStyle != 0:
		return nil, fmt.Errorf("the tag %.100q has no meaning here", n.Tag)
	}
	before := y.values
	if err := y.spend(1); err != nil {
		return nil, err
	}
	value, err := y.own(n, level)
	if err != nil || n.Anchor == "" {
		return value, err
	}
	if y.anchors == nil {
		y.anchors = make(map[string]anchored)
	}
	y.anchors[n.Anchor] = anchored{value, y.values - before} // not before: it is not in itself
	return value, nil
}

// own reads what a node is itself.
func (y *yamlReader) own(n *yaml.Node, level int) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		return y.fields(n.Content, level)
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if items[i], err = y.read(item, level+1); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return scalar(n)
}

func (y *yamlReader) alias(n *yaml.Node) (any, error) {
	known, ok := y.anchors[n.Value]
	if !ok {
		return nil, fmt.Errorf("the alias %.100q stands for nothing", n.Value)
	}
	return known.value, y.spend(known.values)
}

// fields reads a mapping, which has keys and values in turn.
func (y *yamlReader) fields(pairs []*yaml.Node, level int) (any, error) {
	object := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, err := nameOf(pairs[i])
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the field %.100q is there twice", name)
		}
		if object[name], err = y.read(pairs[i+1], level+1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// nameOf returns the name that a key has in JSON.
func nameOf(key *yaml.Node) (string, error) {
	isPlain := key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch {
	case key.Kind != yaml.ScalarNode || isPlain && isNull(key.Value):
		return "", errors.New("a field whose name is no text")
	case key.Style&yaml.TaggedStyle != 0, isPlain && key.Value == "<<": // the latter merges mappings
		return "", fmt.Errorf("the name %.100q has no meaning here", key.Value)
	}
	return key.Value, nil
}

// scalar returns the value of a scalar by the core schema.
func scalar(n *yaml.Node) (any, error) {
	if n.Style != 0 { // it is quoted, or a block
		return n.Value, nil
	}
	switch text := n.Value; {
	case isNull(text):
		return nil, nil
	case text == "true", text == "True", text == "TRUE":
		return true, nil
	case text == "false", text == "False", text == "FALSE":
		return false, nil
	}
	return plain(n.Value)
}

func isNull(text string) bool {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
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

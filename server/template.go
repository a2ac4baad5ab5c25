package server

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"
)

// MaxURI is how long a URI may be, in bytes, to be compared with URI templates.
const MaxURI = 8192

// A uriPattern finds the values of the variables of a URI template. It is a
// regular expression, which takes time in proportion to the URI, whatever a
// client sends.
type uriPattern struct {
	re    *regexp.Regexp
	names []string // of the variables that re captures
}

// An operator is how an expression of a template expands its variables (RFC 6570,
// appendix A).
type operator struct {
	first, separator string
	named            bool // variables are written with their names
	reserved         bool // values may hold reserved characters
}

var operators = map[byte]operator{
	'+': {separator: ",", reserved: true},
	'#': {first: "#", separator: ",", reserved: true},
	'.': {first: ".", separator: "."},
	'/': {first: "/", separator: "/"},
	';': {first: ";", separator: ";", named: true},
	'?': {first: "?", separator: "&", named: true},
	'&': {first: "&", separator: "&", named: true},
}

const (
	unreserved = `\-._~0-9A-Za-z`
	reserved   = `!#$&'()*+,/:;=?@\[\]`
)

// newPattern returns the pattern of a URI template.
func newPattern(template string) (*uriPattern, error) {
	if _, err := uritemplate.New(template); err != nil {
		return nil, err
	}
	p := new(uriPattern)
	var b strings.Builder
	b.WriteString("^")
	for rest := template; rest != ""; {
		literal, expression, found := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		expression, rest, _ = strings.Cut(expression, "}")
		p.expression(&b, expression)
	}
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("it is too large: %w", err)
	}
	p.re = re
	return p, nil
}

// expression adds an expression. Any of its variables may be absent: those of an
// operator with names show which, of others the last ones are.
func (p *uriPattern) expression(b *strings.Builder, text string) {
	op, known := operators[text[0]]
	if known {
		text = text[1:]
	} else {
		op.separator = ","
	}
	variables := strings.Split(text, ",")
	b.WriteString("(?:" + regexp.QuoteMeta(op.first) + "(?:")
	p.variables(b, op, variables)
	if op.named {
		for i := range variables[1:] {
			b.WriteString("|")
			p.variables(b, op, variables[i+1:])
		}
	}
	b.WriteString("))?")
}

// variables adds variables of which the first is there.
func (p *uriPattern) variables(b *strings.Builder, op operator, variables []string) {
	separator := regexp.QuoteMeta(op.separator)
	for i, variable := range variables {
		name, explode := strings.CutSuffix(variable, "*")
		name, length, _ := strings.Cut(name, ":")
		p.names = append(p.names, name)
		value := valuePattern(op, explode || len(variables) == 1 && op.separator == ",", length)
		if op.named {
			value = regexp.QuoteMeta(name) + "(?:=" + value + ")?"
		}
		if i > 0 {
			value = "(?:" + separator + value + ")?"
		}
		b.WriteString(value)
	}
}

// valuePattern returns the pattern of a variable's value. A list holds the
// separator, too; length, if it is not empty, is how many characters are the most.
func valuePattern(op operator, list bool, length string) string {
	class := unreserved
	if list {
		class += regexp.QuoteMeta(op.separator)
	}
	if list && op.named {
		class += "="
	}
	if op.reserved {
		class += reserved
	}
	times := "*"
	if length != "" && len(length) < 4 { // package regexp repeats no more than a thousand times
		times = "{0," + length + "}"
	}
	return "((?:[" + class + "]|%[0-9A-Fa-f][0-9A-Fa-f])" + times + ")"
}

// match returns the values of the variables, decoded, if uri is one of the
// template's. Those that are absent are empty.
func (p *uriPattern) match(uri string) (map[string]string, bool) {
	if len(uri) > MaxURI {
		return nil, false
	}
	found := p.re.FindStringSubmatchIndex(uri)
	if found == nil {
		return nil, false
	}
	values := make(map[string]string, len(p.names))
	for i, name := range p.names {
		from, to := found[2*i+2], found[2*i+3]
		if from < 0 {
			continue
		}
		value, err := url.PathUnescape(uri[from:to])
		before, again := values[name]
		if err != nil || !utf8.ValidString(value) || again && before != value {
			return nil, false
		}
		values[name] = value
	}
	for _, name := range p.names {
		if _, there := values[name]; !there {
			values[name] = ""
		}
	}
	return values, true
}

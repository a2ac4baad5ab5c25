package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A field is one of a form: a text, a number, yes or no, or one or several of some
// options (2026-07-28, client/elicitation, Requested Schema).
type field struct {
	name     string
	schema   schema
	required bool
	preset   []byte // the default, nil for none
	options  []option
	several  bool // of the options
}

// An option is what a field offers.
type option struct {
	value []byte // a JSON value
	title string
}

func newFields(form schema) []field {
	properties := form.properties()
	fields := make([]field, len(properties))
	for i, p := range properties {
		f := field{name: p.name, schema: p.schema, required: p.required}
		f.several = p.schema.may("array")
		if f.several {
			f.options = optionsOf(p.schema.items(), "anyOf")
		} else {
			f.options = optionsOf(p.schema, "oneOf")
		}
		if raw, ok := p.schema.value.Lookup("default"); ok {
			f.preset = raw
		}
		fields[i] = f
	}
	return fields
}

// optionsOf returns the options of a schema: of an enumeration, whose titles may
// stand in enumNames, or of constants with titles.
func optionsOf(s schema, titled string) []option {
	var options []option
	raw, _ := s.value.Lookup(titled)
	for _, item := range jsonrpc.Elements(raw) {
		v := jsonrpc.Trusted(item)
		if value, ok := v.Lookup("const"); ok {
			title, _ := v.LookupString("title")
			options = append(options, option{value, title})
		}
	}
	if options != nil {
		return options
	}
	raw, _ = s.value.Lookup("enumNames")
	titles := jsonrpc.Elements(raw)
	for i, value := range s.enum() {
		o := option{value: value}
		if i < len(titles) {
			o.title = textOf(titles[i])
		}
		options = append(options, o)
	}
	return options
}

// label is an option as it is shown.
func (o option) label() string {
	if o.title == "" {
		return textOf(o.value)
	}
	return o.title
}

func (o option) is(text string) bool {
	return strings.EqualFold(text, o.title) && o.title != "" || strings.EqualFold(text, textOf(o.value))
}

// head says what is asked for.
func (f *field) head(s style) string {
	title, _ := f.schema.value.LookupString("title")
	description, _ := f.schema.value.LookupString("description")
	if title == "" {
		title = f.name
	}
	var head strings.Builder
	head.WriteString(s.bold(clean(title)))
	if about := f.about(); about != "" {
		head.WriteString(s.dim(" (" + about + ")"))
	}
	if description != "" {
		head.WriteString("\n" + harmlessText(description))
	}
	for i, o := range f.options {
		fmt.Fprintf(&head, "\n  %d  %s", i+1, clean(o.label()))
	}
	return head.String()
}

// about says what the answer must be like.
func (f *field) about() string {
	var parts []string
	switch {
	case f.several && f.options != nil:
		parts = append(parts, "numbers, with commas between them")
	case f.options != nil:
		parts = append(parts, "a number")
	default:
		format, _ := f.schema.value.LookupString("format")
		switch kind := strings.Join(f.schema.types(), " or "); {
		case format != "":
			parts = append(parts, clean(format))
		case kind == "boolean":
			parts = append(parts, "yes or no")
		case kind != "string":
			parts = append(parts, clean(kind))
		}
	}
	if !f.required {
		parts = append(parts, "optional")
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// show returns a value as it would be typed.
func (f *field) show(raw []byte) string {
	if items := jsonrpc.Elements(raw); f.several && items != nil {
		var labels []string
		for _, item := range items {
			labels = append(labels, f.labelOf(item))
		}
		return strings.Join(labels, ", ")
	}
	switch string(raw) {
	case "true":
		return "yes"
	case "false":
		return "no"
	}
	return f.labelOf(raw)
}

func (f *field) labelOf(raw []byte) string {
	for _, o := range f.options {
		if bytes.Equal(o.value, raw) {
			return o.label()
		}
	}
	return textOf(raw)
}

// parse returns what was typed as JSON, or why it is no answer.
func (f *field) parse(line string) ([]byte, error) {
	switch {
	case f.several:
		return f.parseSeveral(line)
	case f.options != nil:
		return f.parseOption(line)
	case f.schema.may("boolean"):
		return parseBool(line)
	case f.schema.may("integer"), f.schema.may("number"):
		return f.parseNumber(line)
	case f.schema.may("string"), len(f.schema.types()) == 0:
		return jsonrpc.AppendString(nil, line), f.checkText(line)
	}
	raw, err := jsonOf(line)
	if err != nil {
		return nil, fmt.Errorf("this must be JSON: %w", err)
	}
	return raw, nil
}

func (f *field) parseOption(text string) ([]byte, error) {
	for _, o := range f.options {
		if o.is(text) {
			return o.value, nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.options) {
		return f.options[n-1].value, nil
	}
	return nil, fmt.Errorf("%q is none of these: give a number from 1 to %d", text, len(f.options))
}

func (f *field) parseSeveral(line string) ([]byte, error) {
	var values [][]byte
	for word := range strings.SplitSeq(line, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		value := jsonrpc.AppendString(nil, word)
		if f.options != nil {
			var err error
			if value, err = f.parseOption(word); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(values, func(v []byte) bool { return bytes.Equal(v, value) }) {
			values = append(values, value)
		}
	}
	if err := f.within("minItems", "maxItems", big.NewRat(int64(len(values)), 1), "choices"); err != nil {
		return nil, err
	}
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']'), nil
}

func parseBool(line string) ([]byte, error) {
	line = strings.ToLower(line)
	for _, yes := range []string{"yes", "true"} {
		if strings.HasPrefix(yes, line) {
			return []byte("true"), nil
		}
	}
	for _, no := range []string{"no", "false"} {
		if strings.HasPrefix(no, line) {
			return []byte("false"), nil
		}
	}
	return nil, errors.New("the answer is yes or no")
}

// maxDigits is how long a number may be.
const maxDigits = 400

func (f *field) parseNumber(line string) ([]byte, error) {
	raw, err := jsonOf(line)
	kind := "number"
	if !f.schema.may("number") {
		kind = "integer"
	}
	if err != nil || !isOfType(raw, kind) || len(raw) > maxDigits {
		return nil, fmt.Errorf("%q is no %s", shorten(line, maxShownType), kind)
	}
	if mantissa, exponent, ok := strings.Cut(strings.ToLower(string(raw)), "e"); ok && len(exponent) > 4 {
		return nil, fmt.Errorf("%se%s is out of range", mantissa, exponent)
	}
	number, ok := new(big.Rat).SetString(string(raw))
	if !ok {
		return nil, fmt.Errorf("%q is no %s", line, kind)
	}
	return raw, f.within("minimum", "maximum", number, "")
}

func (f *field) checkText(text string) error {
	if err := f.within("minLength", "maxLength", big.NewRat(int64(utf8.RuneCountInString(text)), 1), "characters"); err != nil {
		return err
	}
	format, _ := f.schema.value.LookupString("format")
	var err error
	switch format {
	case "email":
		address, failed := mail.ParseAddress(text)
		if failed != nil || address.Address != text {
			err = errors.New("this is no e-mail address, as in ada@example.com")
		}
	case "uri":
		if u, failed := url.Parse(text); failed != nil || !u.IsAbs() {
			err = errors.New("this is no URI, as in https://example.com/")
		}
	case "date":
		if _, failed := time.Parse(time.DateOnly, text); failed != nil {
			err = errors.New("this is no date, as in 2026-12-24")
		}
	case "date-time":
		if _, failed := time.Parse(time.RFC3339, text); failed != nil {
			err = errors.New("this is no time, as in 2026-12-24T18:00:00Z")
		}
	}
	return err
}

// within checks a number against two bounds of the schema.
func (f *field) within(least, most string, n *big.Rat, of string) error {
	if bound, text, ok := f.bound(least); ok && n.Cmp(bound) < 0 {
		return errors.New(strings.TrimSpace("it must be at least " + text + " " + of))
	}
	if bound, text, ok := f.bound(most); ok && n.Cmp(bound) > 0 {
		return errors.New(strings.TrimSpace("it must be at most " + text + " " + of))
	}
	return nil
}

// bound returns a bound of the schema, and how it is written there. One that could
// not be compared with cheaply is none.
func (f *field) bound(name string) (*big.Rat, string, bool) {
	raw, ok := f.schema.value.Lookup(name)
	if !ok || len(raw) > 40 {
		return nil, "", false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(string(raw)), "e"); ok && len(exponent) > 4 {
		return nil, "", false
	}
	n, ok := new(big.Rat).SetString(string(raw))
	return n, string(raw), ok
}

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/go-json-experiment/json/jsontext"
)

// maxArgument is how large a file or stdin may be that arguments come from.
const maxArgument = 16 << 20

// An argument is one of a command line, before anything is known of its type.
type argument struct {
	name   string
	text   string
	isJSON bool // given by :=
}

const argumentForms = "the forms are NAME=TEXT, NAME:=JSON, NAME=@FILE and NAME:=@FILE; - as a FILE is stdin"

// parseArguments reads words of the forms NAME=TEXT, NAME:=JSON, NAME=@FILE and
// NAME:=@FILE.
func (a *app) parseArguments(words []string) ([]argument, error) {
	var all []argument
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		arg := argument{}
		arg.name, arg.isJSON = strings.CutSuffix(name, ":")
		if !ok || arg.name == "" {
			hint := argumentForms
			if strings.HasPrefix(word, "{") {
				hint = "an object with all arguments is given by --args"
			}
			return nil, usagef(hint, "%q is no argument", word)
		}
		if file, isFile := strings.CutPrefix(text, "@"); isFile {
			raw, err := a.readInput(file)
			if err != nil {
				return nil, usagef("", "%s: %w", arg.name, err)
			}
			text = string(raw)
		}
		if !utf8.ValidString(text) {
			return nil, usagef("", "%s: the value is not UTF-8", arg.name)
		}
		arg.text = text
		all = append(all, arg)
	}
	return all, nil
}

// readInput reads a file, or stdin for "-".
func (a *app) readInput(name string) ([]byte, error) {
	in := io.Reader(a.In)
	switch {
	case name == "-" && a.inTaken:
		return nil, errors.New("stdin is wanted twice")
	case name == "-":
		a.inTaken = true
	default:
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxArgument+1))
	if err == nil && len(raw) > maxArgument {
		err = fmt.Errorf("it is larger than the limit maxArgument of %d bytes", maxArgument)
	}
	return raw, err
}

// parseObject returns the object that --args says, an empty one for nothing.
func (a *app) parseObject(text string) (jsonrpc.Value, error) {
	raw := []byte(text)
	switch text {
	case "":
		raw = []byte("{}")
	case "-":
		var err error
		if raw, err = a.readInput("-"); err != nil {
			return jsonrpc.Value{}, usagef("", "--args: %w", err)
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			return jsonrpc.Value{}, usagef(`a tool without arguments takes {}, or no --args`, "--args: stdin is empty")
		}
	}
	v, err := parseJSON(raw)
	if err != nil && strings.HasPrefix(text, "@") {
		return v, usagef("a file is given as --args - <FILE", "--args: %w", err)
	}
	if err != nil {
		return v, usagef("", "--args: %w", err)
	}
	if !v.IsObject() {
		return v, usagef(`as in --args '{"name": "value"}'`, "--args must be a JSON object")
	}
	return v, nil
}

// merge returns object with the arguments, each as its property's schema wants
// it; unchecked ones that are of no such type as texts. An argument takes the place
// of the object's own.
func merge(object *jsonrpc.Value, args []argument, input schema, unchecked bool) (jsonrpc.Value, error) {
	lists := make(map[string][][]byte)
	var edits []jsonrpc.Edit
	index := make(map[string]int)
	for _, arg := range args {
		raw, element, err := arg.value(input)
		if err != nil && unchecked && !arg.isJSON {
			raw, err = jsonrpc.AppendString(nil, arg.text), nil
		}
		if err != nil {
			return jsonrpc.Value{}, err
		}
		at, again := index[arg.name]
		switch {
		case again && (!element || lists[arg.name] == nil):
			return jsonrpc.Value{}, usagef("", "%s is given twice", arg.name)
		case element:
			lists[arg.name] = append(lists[arg.name], raw)
			raw = append(append([]byte{'['}, bytes.Join(lists[arg.name], []byte{','})...), ']')
		}
		if again {
			edits[at].Value = raw
			continue
		}
		index[arg.name] = len(edits)
		edits = append(edits, jsonrpc.Edit{Name: arg.name, Value: raw})
	}
	return jsonrpc.Edited(object, edits...), nil
}

// value returns the argument as JSON. Element says that it is one element of an
// array that may be given one by one.
func (arg *argument) value(input schema) (raw []byte, element bool, err error) {
	if arg.isJSON {
		raw, err := jsonOf(arg.text)
		if err != nil {
			return nil, false, usagef("in a shell texts need quotes of both kinds, as in '"+arg.name+`:="text"'`, "%s: %w", arg.name, err)
		}
		return raw, false, nil
	}
	s := schema{whole: input.whole}
	for _, p := range input.properties() {
		if p.name == arg.name {
			s = p.schema
		}
	}
	if s.may("array") && !s.may("string") && !strings.HasPrefix(strings.TrimSpace(arg.text), "[") {
		raw, err := convert(arg.name, arg.text, s.items())
		return raw, true, err
	}
	raw, err = convert(arg.name, arg.text, s)
	return raw, false, err
}

// jsonOf returns a text that is JSON without the space around it.
func jsonOf(text string) ([]byte, error) {
	v, err := parseJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	return v.AppendTo(nil), nil
}

// parseJSON refuses what could not be sent: names that an object has twice, too.
func parseJSON(raw []byte) (jsonrpc.Value, error) {
	raw = bytes.TrimSpace(raw)
	v, err := jsonrpc.ParseValue(raw)
	if err != nil {
		return v, err
	}
	_, err = jsontext.NewDecoder(bytes.NewReader(raw)).ReadValue()
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		err = fmt.Errorf("%w: %q at byte %d", e.Err, e.JSONPointer.LastToken(), e.ByteOffset)
	}
	return v, err
}

// convert returns a text as a value that a schema allows. What no type is known
// of is a string.
func convert(name, text string, s schema) ([]byte, error) {
	quoted := jsonrpc.AppendString(nil, text)
	if values := s.enum(); len(values) > 0 {
		return oneOf(name, text, values)
	}
	types := s.types()
	if len(types) == 0 || s.may("string") {
		return quoted, nil
	}
	raw, err := jsonOf(text)
	if err == nil {
		for _, kind := range types {
			if isOfType(raw, kind) {
				return raw, nil
			}
		}
	}
	return nil, usagef("", "%s must be %s, not %s", name, article(typeName(s, 0)), shorten(string(quoted), maxShownType))
}

// oneOf returns the value of an enumeration that a text stands for.
func oneOf(name, text string, values [][]byte) ([]byte, error) {
	var names []string
	for _, raw := range values {
		if textOf(raw) == text {
			return raw, nil
		}
		names = append(names, textOf(raw))
	}
	hint := ""
	if near := nearest(text, names); len(near) > 0 {
		hint = "did you mean " + joinOr(near) + "?"
	}
	return nil, usagef(hint, "%s must be %s, not %q", name, shorten(joinOr(names), 4*maxShownType), text)
}

// isOfType reports whether a JSON value is of a type of JSON Schema.
func isOfType(raw []byte, kind string) bool {
	switch jsontext.Value(raw).Kind() {
	case '0':
		return kind == "number" || kind == "integer" && isInteger(raw)
	case 't', 'f':
		return kind == "boolean"
	case 'n':
		return kind == "null"
	case '[':
		return kind == "array"
	case '{':
		return kind == "object"
	}
	return false // a string would have been taken as it is
}

// isInteger reports whether a number has no fraction, however it is written.
func isInteger(raw []byte) bool {
	whole, fraction, _ := strings.Cut(string(raw), ".")
	return !strings.ContainsAny(whole+fraction, "eE") && strings.Trim(fraction, "0") == ""
}

// article puts the article before the name of a type.
func article(name string) string {
	if strings.ContainsAny(name, "|{[") {
		return name
	}
	if strings.IndexByte("aeiou", name[0]) >= 0 {
		return "an " + name
	}
	return "a " + name
}

// checkArguments tells of arguments that a tool does not take, and of those that
// it needs.
func checkArguments(tool *mcp.Tool, arguments *jsonrpc.Value, input schema) error {
	properties := input.properties()
	names := make([]string, 0, len(properties))
	for _, p := range properties {
		names = append(names, p.name)
	}
	takes := "the tool is " + signatureOf(tool, false)
	if input.closed() {
		for name := range arguments.Members() {
			if !contains(properties, name) {
				return unknownArgument(tool.Name, name, names, takes)
			}
		}
	}
	var missing []string
	for _, p := range properties {
		if _, given := arguments.Lookup(p.name); p.required && !given {
			missing = append(missing, clean(p.name))
		}
	}
	if len(missing) > 0 {
		return usagef(takes, "%s needs %s", clean(tool.Name), strings.Join(missing, ", "))
	}
	return nil
}

func unknownArgument(of, name string, names []string, takes string) error {
	hint := takes
	if near := nearest(name, names); len(near) > 0 {
		hint = "did you mean " + joinOr(near) + "? " + takes
	}
	return usagef(hint, "%s takes no argument %q", clean(of), name)
}

func contains(properties []property, name string) bool {
	for _, p := range properties {
		if p.name == name {
			return true
		}
	}
	return false
}

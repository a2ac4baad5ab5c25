package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Bounds of what signatures show.
const (
	maxShownType    = 60 // characters of a type; longer objects are {…}
	maxShownDefault = 30
	maxShownMembers = 8 // of an object; larger ones are {…}
	maxTypeDepth    = 2
)

// signatureOf returns a tool's name with what it takes and gives, as in
// "forecast(city: string, days?: integer = 3) → {…}". It is one line, and
// harmless.
func signatureOf(t *mcp.Tool, s style) string {
	var params []string
	for _, p := range newSchema(t.InputSchema).properties() {
		params = append(params, parameter(p))
	}
	signature := s.bold(clean(t.Name)) + "(" + strings.Join(params, ", ") + ")"
	if t.OutputSchema != nil && string(t.OutputSchema) != "null" {
		signature += " → " + typeName(newSchema(t.OutputSchema), 0)
	}
	return signature
}

// parameter shows a property with its type and default.
func parameter(p property) string {
	text := clean(p.name)
	if !p.required {
		text += "?"
	}
	text += ": " + typeName(p.schema, 0)
	if value, ok := p.schema.value.Lookup("default"); ok {
		text += " = " + shorten(clean(string(value)), maxShownDefault)
	}
	return text
}

// promptSignature is signatureOf for a prompt, whose arguments are all strings.
func promptSignature(p *mcp.Prompt, s style) string {
	var arguments []string
	for _, a := range p.Arguments {
		if a.Required {
			arguments = append(arguments, clean(a.Name))
		}
	}
	for _, a := range p.Arguments {
		if !a.Required {
			arguments = append(arguments, clean(a.Name)+"?")
		}
	}
	return s.bold(clean(p.Name)) + "(" + strings.Join(arguments, ", ") + ")"
}

// typeName shows which values a schema allows.
func typeName(s schema, depth int) string {
	if values := s.enum(); len(values) > 0 {
		return enumName(s, values)
	}
	if parts := s.union(); len(parts) > 0 && depth < maxTypeDepth {
		return unionName(parts, depth)
	}
	var names []string
	for _, kind := range s.types() {
		switch kind {
		case "array":
			kind = arrayName(s, depth)
		case "object":
			kind = objectName(s, depth)
		}
		names = append(names, clean(kind))
	}
	if len(names) == 0 {
		return "any"
	}
	return strings.Join(names, "|")
}

func enumName(s schema, values [][]byte) string {
	var names []string
	for _, value := range values {
		names = append(names, clean(string(value)))
	}
	all := strings.Join(names, "|")
	if utf8.RuneCountInString(all) <= maxShownType {
		return all
	}
	return shorten(strings.Join(names[:min(len(names), 3)], "|"), maxShownType-2) + "|…"
}

func unionName(parts []schema, depth int) string {
	var names []string
	for _, part := range parts {
		if name := typeName(part, depth+1); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

func arrayName(s schema, depth int) string {
	raw, ok := s.value.Lookup("items")
	if !ok || len(raw) == 0 || raw[0] != '{' || depth >= maxTypeDepth {
		return "array"
	}
	name := typeName(s.items(), depth+1)
	if strings.ContainsRune(name, '|') && name[0] != '{' {
		name = "(" + name + ")"
	}
	return name + "[]"
}

func objectName(s schema, depth int) string {
	properties := s.properties()
	if len(properties) == 0 {
		return "object"
	}
	if depth >= maxTypeDepth || len(properties) > maxShownMembers {
		return "{…}"
	}
	var members []string
	for _, p := range properties {
		name := clean(p.name)
		if !p.required {
			name += "?"
		}
		members = append(members, name+": "+typeName(p.schema, depth+1))
	}
	whole := "{" + strings.Join(members, ", ") + "}"
	if utf8.RuneCountInString(whole) > maxShownType {
		return "{…}"
	}
	return whole
}

// clean returns a text of a server's as a part of a line.
func clean(text string) string { return strings.Map(printable, text) }

// textOf returns what a JSON string says, and anything else as it is.
func textOf(raw []byte) string {
	if text, ok := jsonrpc.Unquote(raw); ok {
		return text
	}
	return string(raw)
}

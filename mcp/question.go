package mcp

import "github.com/mcpsplice/mcpsplice/jsonrpc"

// CanAsk reports whether a client with these capabilities may be asked a
// question of the protocol: it must have declared the mode of an elicitation,
// and tools for sampling that offers some. No other question may be put to a
// modern client (2026-07-28, patterns/mrtr, Server Requirements).
func CanAsk(clientCapabilities []byte, question *Request) bool {
	name, known := capabilityFor[question.Method]
	declared := jsonrpc.Trusted(clientCapabilities)
	capability := declared.Get(name)
	if !known || !capability.IsObject() {
		return false
	}
	switch question.Method {
	case MethodElicit:
		return canElicit(&capability, &question.Params)
	case MethodCreateMessage:
		return has(&capability, "tools") || !offersTools(&question.Params)
	}
	return true
}

// offersTools reports whether a model that is sampled may call tools.
func offersTools(params *jsonrpc.Value) bool {
	return has(params, "tools") || has(params, "toolChoice")
}

// has reports whether an object has a member that says something: languages write null
// that have no absent ones.
func has(v *jsonrpc.Value, name string) bool {
	raw, ok := v.Lookup(name)
	return ok && string(raw) != "null"
}

// capabilityFor names the client capability that a question needs.
var capabilityFor = map[string]string{
	MethodElicit:        "elicitation",
	MethodCreateMessage: "sampling",
	MethodListRoots:     "roots",
}

// canElicit: "an empty capabilities object is equivalent to declaring support for
// form mode only" (2026-07-28, client/elicitation).
func canElicit(capability, params *jsonrpc.Value) bool {
	form, url := has(capability, "form"), has(capability, "url")
	mode := "form"
	if has(params, "mode") {
		mode, _ = params.LookupString("mode")
	}
	return mode == "form" && (form || !url) || mode == "url" && url
}

// MissingCapability returns the error that says that a request needs something of
// the client that it has not declared, given a question that must be asked
// (2026-07-28, basic, Error Codes).
func MissingCapability(question *Request) *jsonrpc.Error {
	name, known := capabilityFor[question.Method]
	err := jsonrpc.Errorf(jsonrpc.CodeMissingCapability, "Missing required client capability: the server asks %.80s", question.Method)
	if !known {
		return err
	}
	mode, _ := question.Params.LookupString("mode")
	detail := "{}"
	switch {
	case question.Method == MethodElicit && mode == ElicitURL:
		detail = `{"url":{}}`
	case question.Method == MethodCreateMessage && offersTools(&question.Params):
		detail = `{"tools":{}}`
	}
	err.Data = jsonrpc.Trusted([]byte(`{"requiredCapabilities":{"` + name + `":` + detail + `}}`))
	return err
}

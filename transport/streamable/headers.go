package streamable

import (
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Headers of the transport, in the form that net/http gives them.
const (
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	sessionHeader = "Mcp-Session-Id"
	lastEventID   = "Last-Event-Id"
)

func mismatch(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeHeaderMismatch, "Header mismatch: "+format, args...)
}

// headerFault says why the values of a header are not the one that is wanted.
func headerFault(name string, values []string, want string) *jsonrpc.Error {
	switch len(values) {
	case 0:
		return mismatch("%s is missing", name)
	case 1:
		return mismatch("%s header value %.200q does not match body value %.200q", name, values[0], want)
	}
	return mismatch("%s is there %d times", name, len(values))
}

// checkVersion compares the version header with the body's, whatever revision
// they name.
func (p *post) checkVersion() *jsonrpc.Error {
	values := p.out.r.Header[versionHeader]
	body, inBody := p.m.Meta.LookupString(mcp.MetaProtocolVersion)
	if len(values) != 1 || inBody && body != values[0] {
		return headerFault("MCP-Protocol-Version", values, body)
	}
	return nil
}

// checkHeaders compares the other mirrored headers with the body (2026-07-28,
// streamable-http, Server Validation).
func (p *post) checkHeaders(req *mcp.Request) *jsonrpc.Error {
	values := p.out.r.Header[methodHeader]
	if len(values) != 1 || values[0] != req.Method {
		return headerFault("Mcp-Method", values, req.Method)
	}
	param, ok := mcp.NameParam(req.Method)
	if !ok {
		return nil
	}
	want, isString := req.Params.LookupString(param)
	if !isString {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %s must be a string", param)
	}
	values = p.out.r.Header[nameHeader]
	if len(values) == 0 && !mcp.MustHaveName(req.Method) {
		return nil
	}
	if len(values) != 1 {
		return headerFault("Mcp-Name", values, want)
	}
	if got, ok := mcp.DecodeHeader(values[0]); !ok || got != want {
		return headerFault("Mcp-Name", values, want)
	}
	if req.Method == mcp.MethodCallTool {
		return p.checkParams(req, want)
	}
	return nil
}

// checkParams compares the headers that mirror parameters of a tool, as far as
// its annotations are known, and keeps those that are not known.
func (p *post) checkParams(req *mcp.Request, tool string) *jsonrpc.Error {
	known, _ := p.h.headers.Lookup(tool)
	arguments := req.Params.Get("arguments")
	for i := range known {
		name := mcp.HeaderPrefix + known[i].Name
		values := p.out.r.Header.Values(name)
		want, there, err := known[i].Value(arguments)
		if err != nil {
			return mismatch("%v", err)
		}
		if !there && len(values) == 0 {
			continue
		}
		if len(values) != 1 || !there {
			return headerFault(name, values, want)
		}
		got, ok := mcp.DecodeHeader(values[0])
		if !ok || !known[i].Matches(got, want) {
			return headerFault(name, values, want)
		}
	}
	req.Meta.Headers = p.unknownHeaders(known)
	return nil
}

// unknownHeaders returns the headers that may mirror parameters but are not
// known to. Who does not recognize such a header must forward it.
func (p *post) unknownHeaders(known []mcp.ParamHeader) map[string]string {
	var unknown map[string]string
	for name, values := range p.out.r.Header {
		if !strings.HasPrefix(name, mcp.HeaderPrefix) || isKnown(known, name) {
			continue
		}
		if unknown == nil {
			unknown = make(map[string]string)
		}
		// Several lines of one header are one (RFC 9110, section 5.3).
		unknown[name] = strings.Join(values, ", ")
	}
	return unknown
}

func isKnown(known []mcp.ParamHeader, name string) bool {
	for _, h := range known {
		if strings.EqualFold(mcp.HeaderPrefix+h.Name, name) {
			return true
		}
	}
	return false
}

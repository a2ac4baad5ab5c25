package floor

import (
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Server answers MCP requests of both protocol families. It is safe for
// concurrent use.
type Server struct {
	// Typed makes the server decode each text into a Go string and quote it
	// again, as a tool with Go types must.
	Typed bool
}

const (
	serverInfo = `{"name":"floor","version":"1.0.0"}`
	tool       = `{"name":"` + wire.ToolName + `","description":"Gives the text back.","inputSchema":` +
		`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`

	initializeResult = `{"protocolVersion":"` + string(wire.Legacy) + `","capabilities":{"tools":{}},` +
		`"serverInfo":` + serverInfo + `}`
	discoverResult = `{"resultType":"complete","supportedVersions":["` + string(wire.Modern) + `"],` +
		`"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":` + serverInfo + `},` +
		`"ttlMs":0,"cacheScope":"private"}`
	legacyList = `{"tools":[` + tool + `]}`
	modernList = `{"resultType":"complete","tools":[` + tool + `],"ttlMs":0,"cacheScope":"private"}`

	legacyCall = `{"content":[{"type":"text","text":"`
	modernCall = `{"resultType":"complete","content":[{"type":"text","text":"`
	callEnd    = `"}]}`

	parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not a request"}}`
)

// answer appends the response to a message to out; to a notification there is
// none.
func (s *Server) answer(out, message []byte) []byte {
	r, err := scan(message)
	if err != nil {
		return append(out, parseError...)
	}
	if r.id == nil {
		return out
	}
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, r.id...)
	result := ""
	switch string(r.method) {
	case "tools/call":
		return s.answerCall(out, r)
	case "tools/list":
		result = legacyList
		if r.modern {
			result = modernList
		}
	case "initialize":
		result = initializeResult
	case "server/discover":
		result = discoverResult
	case "ping":
		result = "{}"
	default:
		return append(out, `,"error":{"code":-32601,"message":"method not found"}}`...)
	}
	out = append(out, `,"result":`...)
	out = append(out, result...)
	return append(out, '}')
}

func (s *Server) answerCall(out []byte, r request) []byte {
	out = append(out, `,"result":`...)
	if r.modern {
		out = append(out, modernCall...)
	} else {
		out = append(out, legacyCall...)
	}
	if s.Typed {
		out = appendQuoted(out, unquote(r.text))
	} else {
		out = append(out, r.text...)
	}
	return append(out, callEnd+"}"...)
}

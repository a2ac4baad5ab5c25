package server

import (
	"maps"
	"strconv"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// isModern reports whether a request is to be answered as a modern one. So is
// one that was made in this process.
func isModern(req *mcp.Request) bool { return req.Meta.Revision.Era() != mcp.Legacy }

// newResult returns the beginning of a result of about size bytes: "Servers SHOULD
// identify themselves in each result" of a modern client (2026-07-28, basic,
// _meta). Its index saves the edge from looking for what is in it.
func (s *Server) newResult(req *mcp.Request, size int) jsonrpc.Builder {
	if !isModern(req) {
		return jsonrpc.NewBuilder(size)
	}
	b := jsonrpc.NewBuilder(size + len(s.prefix))
	b.AddRaw("resultType", complete)
	b.AddRaw("_meta", s.meta)
	return b
}

var complete = []byte(`"complete"`)

// begin appends the beginning of a result to dst, up to its last member: "Servers
// SHOULD identify themselves in each result" of a modern client (2026-07-28,
// basic, _meta).
func (s *Server) begin(dst []byte, req *mcp.Request) []byte {
	if isModern(req) {
		return append(dst, s.prefix...)
	}
	return append(dst, '{')
}

// appendName appends the name of the next member of the object that dst ends in.
func appendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendHints(dst []byte, ttl time.Duration, scope mcp.CacheScope) []byte {
	dst = appendName(dst, "ttlMs")
	dst = strconv.AppendInt(dst, ttl.Milliseconds(), 10)
	dst = appendName(dst, "cacheScope")
	return jsonrpc.AppendString(dst, string(scope))
}

// encodeResult encodes v, a result of package mcp.
func encodeResult(v any) (mcp.Result, error) {
	raw, err := mcp.NewJSON(v)
	if err != nil {
		return mcp.Result{}, err
	}
	return mcp.RawResult(raw), nil
}

// members completes what a function's result says of itself.
func (c *Call) members(m *mcp.ResultMembers) {
	if isModern(c.req) {
		if m.ResultType == "" {
			m.ResultType = mcp.Complete
		}
		if _, named := m.Meta[mcp.MetaServerInfo]; !named {
			meta := make(mcp.Object, len(m.Meta)+1)
			maps.Copy(meta, m.Meta)
			meta[mcp.MetaServerInfo] = c.server.info.JSON()
			m.Meta = meta
		}
	}
}

// finishRaw completes a result that a raw function has written.
func (c *Call) finishRaw(r mcp.Result) mcp.Result {
	if !isModern(c.req) || c.req.Notification {
		return r
	}
	r.Value = r.Indexed()
	meta := r.Get("_meta")
	if _, named := meta.Lookup(mcp.MetaServerInfo); named {
		return r
	}
	meta = jsonrpc.Edited(&meta, jsonrpc.Edit{Name: mcp.MetaServerInfo, Value: c.server.info.JSON()})
	edits := []jsonrpc.Edit{{Name: "_meta", Value: meta.Raw()}}
	if _, typed := r.Lookup("resultType"); !typed {
		edits = append(edits, jsonrpc.Edit{Name: "resultType", Value: []byte(`"complete"`)})
	}
	return mcp.Result{Value: jsonrpc.Edited(&r.Value, edits...)}
}

// textResult returns the result of a tool that is one text.
func (c *Call) textResult(text string, failed bool) mcp.Result {
	const rest = 96
	b := c.server.newResult(c.req, len(text)+len(text)/16+rest)
	b.Add("content", func(dst []byte) []byte { return appendTextContent(dst, text) })
	if failed {
		b.AddRaw("isError", []byte("true"))
	}
	return mcp.Result{Value: b.Value()}
}

// appendTextContent appends content that is one text.
func appendTextContent[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, `[{"type":"text","text":`...)
	dst = jsonrpc.AppendString(dst, text)
	return append(dst, "}]"...)
}

// structuredResult returns the result of a tool that is structured content. "For
// backwards compatibility, a tool that returns structured content SHOULD also
// return the serialized JSON in a TextContent block" (2025-11-25 and 2026-07-28,
// server/tools, Structured Content).
func (c *Call) structuredResult(raw []byte) mcp.Result {
	const rest = 128
	b := c.server.newResult(c.req, 2*len(raw)+len(raw)/8+rest)
	b.Add("content", func(dst []byte) []byte { return appendTextContent(dst, raw) })
	b.AddRaw("structuredContent", raw)
	return mcp.Result{Value: b.Value()}
}

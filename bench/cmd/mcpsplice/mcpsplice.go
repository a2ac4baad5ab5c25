package main

import (
	"context"

	"github.com/mcpsplice/mcpsplice/bench/internal/serve"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// serveStdio serves on stdin and stdout until stdin ends, in both protocol
// families.
func serveStdio(h mcp.Handler) error {
	return stdio.Serve(context.Background(), h, nil)
}

// serveHTTP serves both protocol families at addr and [wire.Path] until the
// process ends.
func serveHTTP(addr string, h mcp.Handler) error {
	return serve.HTTP(addr, streamable.NewHandler(h, nil))
}

const (
	discovery = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1"}}}`
	tools     = `{"tools":[{"name":"` + wire.ToolName + `","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}`
)

// handler returns a server with one tool that gives its text back: as the bytes
// that came, or decoded into a Go string and encoded again.
func handler(typed bool) mcp.Handler {
	return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return mcp.RawResult([]byte(discovery)), nil
		case mcp.MethodListTools:
			return mcp.RawResult([]byte(tools)), nil
		case mcp.MethodCallTool:
			return call(req, typed)
		}
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	})
}

func call(req *mcp.Request, typed bool) (mcp.Result, error) {
	if name, _ := req.Params.LookupString("name"); name != wire.ToolName {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown tool")
	}
	arguments := req.Params.Get("arguments")
	quoted, ok := arguments.Lookup("text")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "text is missing")
	}
	out := append(make([]byte, 0, len(quoted)+64), `{"content":[{"type":"text","text":`...)
	if typed {
		text, isString := jsonrpc.Unquote(quoted)
		if !isString {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "text is no string")
		}
		out = jsonrpc.AppendString(out, text)
	} else {
		out = append(out, quoted...)
	}
	return mcp.RawResult(append(out, `}]}`...)), nil
}

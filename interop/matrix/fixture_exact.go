package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// exactVendor is an unknown member of a result.
const exactVendor = `{"b":1,"a":1e2,"z":-0,"n":123456789012345678901234567890,"t":"\u00e9\/"}`

// exact returns what it was sent, byte for byte, with a member that nobody knows.
func exact(_ context.Context, c *server.Call) (mcp.Result, error) {
	params := c.Request().Params
	meta := params.Get("_meta")
	arguments, _ := params.Lookup("arguments")
	vendor, _ := params.Lookup("vendor")
	vendorMeta, _ := meta.Lookup("example.com/vendor")
	return mcp.RawResult(fmt.Appendf(nil,
		`{"content":[],"structuredContent":{"arguments":%s,"vendor":%s,"meta":%s},"vendor":%s,"_meta":{"example.com/vendor":%s}}`,
		arguments, vendor, vendorMeta, exactVendor, exactVendor)), nil
}

// asidesTool sends bytes of its own in all messages that are no result.
const asidesTool = "asides"

// chatterTool logs at all levels, whatever its client wants.
const chatterTool = "chatter"

// boldTool asks whatever its client has declared.
const boldTool = "bold"

// Handle implements [mcp.Handler]. Package server encodes what its functions send,
// and sends no log messages and questions that are not wanted: some tools do
// otherwise.
func (f *fixture) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	name := ""
	if req.Method == mcp.MethodCallTool {
		name, _ = req.Params.LookupString("name")
	}
	switch name {
	case asidesTool:
		return asides(ctx, req, caller)
	case chatterTool:
		return chatter(ctx, caller)
	case boldTool:
		return bold(ctx, req, caller)
	case workTool:
		return f.tasks.call(ctx, req, caller)
	}
	if strings.HasPrefix(req.Method, "tasks/") {
		return f.tasks.handle(ctx, req, caller)
	}
	result, err := f.Server.Handle(ctx, req, caller)
	if err == nil && req.Method == mcp.MethodDiscover {
		result = f.tasks.declared(result, req.Meta.Revision)
	}
	return result, err
}

// levels are those of the messages of the tools log and chatter.
var levels = []mcp.Level{"debug", "info", "warning", "error"}

func chatter(ctx context.Context, caller mcp.Caller) (mcp.Result, error) {
	for _, level := range levels {
		n, err := mcp.NewNotification(mcp.NotificationMessage, mcp.LogParams{
			Level: level, Logger: "fixture", Data: mcp.JSON(`"at ` + level + `"`),
		})
		if err == nil {
			err = caller.Notify(ctx, n)
		}
		if err != nil {
			return mcp.Result{}, err
		}
	}
	return mcp.RawResult([]byte(`{"content":[{"type":"text","text":"logged"}]}`)), nil
}

// boldQuestions are what the tool bold asks, by the argument question.
var boldQuestions = map[string]mcp.InputRequest{
	"form":   {Method: mcp.MethodElicit, Params: mcp.JSON(`{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`)},
	"url":    {Method: mcp.MethodElicit, Params: mcp.JSON(`{"mode":"url","message":"open","url":"` + pageURL + `","elicitationId":"1"}`)},
	"sample": server.SampleRequest(sampling("anybody?")),
	"roots":  server.RootsRequest(),
}

// bold tells what became of a question.
func bold(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	arguments := req.Params.Get("arguments")
	name, _ := arguments.LookupString("question")
	question := boldQuestions[name]
	answer, err := caller.Ask(ctx, &mcp.Request{Method: question.Method, Params: jsonrpc.Trusted(question.Params)})
	text := fmt.Sprintf("refused: %v", err)
	if err == nil {
		text = fmt.Sprintf("answered: %s", answer.Raw())
	}
	return mcp.NewResult(&mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: text}}})
}

// What the tool asides sends. %s is the call's progress token.
const (
	asideProgress = `{"progress":1.50,"progressToken":%s,"total":1e2,"vendor":` + exactVendor + `}`
	asideLog      = `{"data":` + exactVendor + `,"level":"error","vendor":` + exactVendor + `}`
	asideQuestion = `{"messages":[{"role":"user","content":{"type":"text","text":"\u00e9"}}],"maxTokens":10,` +
		`"metadata":` + exactVendor + `,"vendor":` + exactVendor + `}`
)

// asides tells of progress, logs, asks, and returns the answer as it came.
func asides(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	for method, params := range map[string]string{
		mcp.NotificationProgress: fmt.Sprintf(asideProgress, req.Meta.ProgressToken.Raw()),
		mcp.NotificationMessage:  asideLog,
	} {
		if err := caller.Notify(ctx, &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(params))}); err != nil {
			return mcp.Result{}, err
		}
	}
	answer, err := caller.Ask(ctx, &mcp.Request{
		Method: mcp.MethodCreateMessage, Params: jsonrpc.Trusted([]byte(asideQuestion)),
	})
	if err != nil {
		return mcp.Result{}, err
	}
	return mcp.RawResult(fmt.Appendf(nil, `{"content":[],"structuredContent":{"answer":%s}}`, answer.Raw())), nil
}

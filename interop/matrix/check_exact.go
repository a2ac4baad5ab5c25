package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// What is sent to the tool exact.
const (
	exactArguments = `{"id":9007199254740993,"z":-0,"big":123456789012345678901234567890.10,"e":1E+2,"text":"\u00e9\/\ud83d\ude00","":[],"deep":[[{"a":null}]]}`
	exactMember    = `[1.0,{"b":1,"a":2}]`
)

// checkExact sends bytes that no decoder and encoder would leave as they are.
func checkExact(ctx context.Context, c *cell) error {
	params := fmt.Sprintf(`{"name":"exact","arguments":%s,"vendor":%s,"_meta":{"example.com/vendor":%s}}`,
		exactArguments, exactMember, exactMember)
	result, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params))}, mcp.NoCaller{})
	if err != nil {
		return err
	}
	result.Value = result.Indexed()
	member := func(name string) string {
		raw, _ := result.Lookup(name)
		return string(raw)
	}
	meta := result.Get("_meta")
	vendor, _ := meta.Lookup("example.com/vendor")
	return errors.Join(
		differ("what came to the server", member("structuredContent"),
			fmt.Sprintf(`{"arguments":%s,"vendor":%s,"meta":%s}`, exactArguments, exactMember, exactMember)),
		differ("the unknown member of the result", member("vendor"), exactVendor),
		differ("the unknown member of its _meta", string(vendor), exactVendor),
	)
}

// asideAnswer is what the client answers the tool asides.
const asideAnswer = `{"role":"assistant","content":{"type":"text","text":"\u00e9"},"model":"m","vendor":` + exactVendor + `}`

// A witness is a Caller that keeps what comes to it, and answers with asideAnswer.
type witness struct {
	mu   sync.Mutex
	came map[string]string // params by method; guarded by mu
}

// Notify implements [mcp.Caller].
func (w *witness) Notify(_ context.Context, n *mcp.Notification) error {
	w.keep(n.Method, n.Params.Raw())
	return nil
}

// Ask implements [mcp.Caller].
func (w *witness) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	w.keep(req.Method, req.Params.Raw())
	return mcp.RawResult([]byte(asideAnswer)), nil
}

func (w *witness) keep(method string, params []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.came[method] += string(params)
}

// said returns the params of all messages of a method so far.
func (w *witness) said(method string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.came[method]
}

// checkExactAsides is checkExact for messages that are neither call nor result.
func checkExactAsides(ctx context.Context, c *cell) error {
	const token = `"t\u0031"`
	w := &witness{came: make(map[string]string)}
	params := fmt.Sprintf(`{"name":%q,"arguments":{},"_meta":{"progressToken":%s}}`, asidesTool, token)
	result, err := c.handleRaw(ctx, params, w)
	if err == nil && result.Type() == mcp.InputRequired {
		if params, err = answerRaw(&result, params, w); err != nil {
			return err
		}
		result, err = c.handleRaw(ctx, params, w)
	}
	if err != nil {
		return err
	}
	content, _ := result.Lookup("structuredContent")
	return errors.Join(
		differ("the progress", w.said(mcp.NotificationProgress), fmt.Sprintf(asideProgress, token)),
		differ("the log message", w.said(mcp.NotificationMessage), asideLog),
		differ("the question", w.said(mcp.MethodCreateMessage), asideQuestion),
		differ("the answer", string(content), `{"answer":`+asideAnswer+`}`),
	)
}

// handleRaw makes a call of a tool with the params as they are.
func (c *cell) handleRaw(ctx context.Context, params string, caller mcp.Caller) (mcp.Result, error) {
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params))}
	meta := req.Params.Get("_meta")
	req.Meta.ProgressToken, req.Meta.LogLevel = mcp.ReadProgressToken(&meta), "error"
	result, err := c.Handle(ctx, req, caller)
	result.Value = result.Indexed()
	return result, err
}

// answerRaw returns the params of the retry that answers a result which needs input.
func answerRaw(result *mcp.Result, params string, w *witness) (retry string, err error) {
	requests := result.Get("inputRequests")
	state, _ := result.Lookup("requestState")
	for key, raw := range requests.Members() {
		question := jsonrpc.Trusted(raw)
		method, _ := question.LookupString("method")
		asked, _ := question.Lookup("params")
		w.keep(method, asked)
		return fmt.Sprintf(`%s,"inputResponses":{%q:%s},"requestState":%s}`, params[:len(params)-1], key, asideAnswer, state), nil
	}
	return "", errors.New("the result asks nothing")
}

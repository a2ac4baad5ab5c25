package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// An answerer is the Caller of a call that the client's own functions stand
// behind.
type answerer struct {
	client *Client
	opts   *CallOptions // of the call; nil if there is no call
}

// Notify implements [mcp.Caller].
func (a *answerer) Notify(_ context.Context, n *mcp.Notification) error {
	switch n.Method {
	case mcp.NotificationProgress:
		a.progressed(n)
	case mcp.NotificationMessage:
		log := a.client.opts.Log
		if a.opts != nil && a.opts.Log != nil {
			log = a.opts.Log
		}
		a.client.logged(n.Params.Raw(), log)
	case mcp.NotificationElicitationComplete:
		a.client.completed(n)
	default:
		a.client.told(n)
	}
	return nil
}

func (a *answerer) progressed(n *mcp.Notification) {
	if a.opts == nil || a.opts.Progress == nil {
		return
	}
	var params mcp.ProgressParams
	if err := mcp.JSON(n.Params.Raw()).Decode(&params); err != nil {
		a.client.opts.Logger.Debug("progress that cannot be read", "err", err)
		return
	}
	a.opts.Progress(&params)
}

// logged hands the params of a log message to the function for them.
func (c *Client) logged(raw []byte, log func(*mcp.LogParams)) {
	if log == nil {
		return
	}
	var params mcp.LogParams
	if err := json.Unmarshal(raw, &params); err != nil {
		c.opts.Logger.Debug("a log message that cannot be read", "err", err)
		return
	}
	log(&params)
}

// Ask implements [mcp.Caller].
func (a *answerer) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	o := &a.client.opts
	ctx, done := a.client.untilClosed(ctx)
	defer done()
	if !mcp.CanAsk(a.client.link.dialer.opts.Capabilities, req) {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	switch {
	case req.Method == mcp.MethodElicit && o.Elicit != nil:
		return answer(ctx, req, func(ctx context.Context, params *mcp.ElicitParams) (any, error) {
			if params.Mode == mcp.ElicitURL {
				a.client.elicitations.begin(params.ElicitationID)
			}
			return elicited(ctx, params, o.Elicit)
		})
	case req.Method == mcp.MethodCreateMessage && o.Sample != nil:
		return answer(ctx, req, func(ctx context.Context, params *mcp.CreateMessageParams) (any, error) {
			result, err := o.Sample(ctx, params)
			if err == nil && result == nil {
				err = errors.New("sampling: there is no answer")
			}
			return result, err
		})
	case req.Method == mcp.MethodListRoots && o.Roots != nil:
		roots, err := o.Roots(ctx)
		if err != nil {
			return mcp.Result{}, err
		}
		if roots == nil {
			roots = []mcp.Root{}
		}
		return mcp.NewResult(mcp.ListRootsResult{Roots: roots})
	}
	return mcp.Result{}, mcp.ErrCannotAsk
}

// answer decodes the params of a question, has it answered, and encodes the
// answer.
func answer[Params any](ctx context.Context, req *mcp.Request, f func(context.Context, *Params) (any, error)) (mcp.Result, error) {
	var params Params
	if err := mcp.JSON(req.Params.Raw()).Decode(&params); err != nil {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	result, err := f(ctx, &params)
	if err != nil {
		return mcp.Result{}, err
	}
	return mcp.NewResult(result)
}

// elicited has a user answer, and fills in the defaults of the form's schema
// where the answer lacks fields (2025-11-25, client/elicitation).
func elicited(ctx context.Context, params *mcp.ElicitParams,
	ask func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error),
) (*mcp.ElicitResult, error) {
	result, err := ask(ctx, params)
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, errors.New("elicitation: there is no answer")
	}
	if result.Action != mcp.Accept || params.Mode == mcp.ElicitURL {
		return result, nil
	}
	content, err := withDefaults(params.RequestedSchema, result.Content)
	if err != nil {
		return nil, fmt.Errorf("elicitation: %w", err)
	}
	filled := *result
	filled.Content = content
	return &filled, nil
}

// withDefaults returns content with the defaults that a schema has for absent
// properties.
func withDefaults(schema, content mcp.JSON) (mcp.JSON, error) {
	var form struct {
		Properties map[string]struct {
			Default mcp.JSON `json:"default"`
		} `json:"properties"`
	}
	if schema != nil {
		if err := schema.Decode(&form); err != nil {
			return nil, err
		}
	}
	fields := mcp.Object{}
	if content != nil && string(content) != "null" {
		if err := content.Decode(&fields); err != nil {
			return nil, err
		}
	}
	for name, property := range form.Properties {
		if _, given := fields[name]; !given && property.Default != nil && string(property.Default) != "null" {
			fields[name] = property.Default
		}
	}
	return mcp.NewJSON(fields)
}

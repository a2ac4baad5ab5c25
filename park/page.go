package park

import (
	"context"
	"strconv"

	"github.com/mcpsplice/mcpsplice/internal/visit"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// anew is the id of no call: a state that holds it says that the request is to be
// made anew when the client has answered.
const anew = 0

// withPages turns the error by which a legacy server says that the user must open
// pages first (2025-11-25, client/elicitation, URL Elicitation Required Error)
// into the result by which a modern one does. Other errors stay.
func (l *Lot) withPages(req *mcp.Request, err error) (mcp.Result, error) {
	required := visit.Required(err, MaxQuestions)
	if len(required) == 0 {
		return mcp.Result{}, err
	}
	questions := make([]*question, len(required))
	for i := range required {
		q := &required[i]
		if !mcp.CanAsk(req.Meta.Capabilities, q) {
			return mcp.Result{}, mcp.MissingCapability(q)
		}
		questions[i] = &question{req: q, key: "q" + strconv.Itoa(i+1)}
	}
	sealed, serr := l.sealer.Seal(req, l.opts.Life, payload(anew, 0))
	if serr != nil {
		return mcp.Result{}, serr
	}
	return mcp.RawResult(inputRequired(questions, l.name+sealed)), nil
}

// again makes a request anew whose client has opened pages. The server knows
// whether its user is done there. It cannot be told of a user who does not want to
// open one, and would require it again.
func (l *Lot) again(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if refusesPage(&req.Params) {
		return mcp.Result{}, &mcp.CallError{
			Method: req.Method, Kind: mcp.Cancelled, Outcome: mcp.Answered,
			Public: "the user has not opened the page that the server requires",
		}
	}
	next := *req
	next.Params = jsonrpc.Edited(&req.Params, jsonrpc.Edit{Name: "requestState"}, jsonrpc.Edit{Name: "inputResponses"})
	return l.handle(ctx, &next, caller)
}

// refusesPage reports whether one of the answers is that the user has declined or closed
// the dialog.
func refusesPage(params *jsonrpc.Value) bool {
	responses := params.Get("inputResponses")
	for _, raw := range responses.Members() {
		answer := jsonrpc.Trusted(raw)
		switch action, _ := answer.LookupString("action"); mcp.ElicitAction(action) {
		case mcp.Decline, mcp.Cancel:
			return true
		}
	}
	return false
}

package session

import (
	"context"
	"crypto/rand"

	"github.com/mcpsplice/mcpsplice/internal/visit"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// MaxPageWait is how long a call waits for its user to be done with pages that a
// server has asked to open: ten minutes.
const MaxPageWait = visit.MaxWait

// openPages are the pages that a client has been asked to open. A modern server asks
// for one again as long as its user is not done there, and a legacy client, which has
// answered once, is told when that is over (notifications/elicitation/complete;
// 2025-11-25, client/elicitation).
type openPages struct {
	visit.Pages
	ids map[string]string // by URL
}

// answer answers questions that have been answered before, and returns how many
// have not.
func (p *openPages) answer(questions []inputRequest) (unanswered int) {
	for i := range questions {
		q := &questions[i]
		if q.answer = p.Answer(q.page); q.answer == nil {
			unanswered++
		}
	}
	if unanswered > 0 {
		p.Asked()
	}
	return unanswered
}

// name gives the elicitation of a page the id that legacy clients want.
func (p *openPages) name(q *inputRequest) {
	if q.page == "" {
		return
	}
	if p.ids == nil {
		p.ids = make(map[string]string)
	}
	if p.ids[q.page] == "" {
		p.ids[q.page] = rand.Text()
	}
	q.req.Params = jsonrpc.Edited(&q.req.Params,
		jsonrpc.Edit{Name: "elicitationId", Value: jsonrpc.AppendString(nil, p.ids[q.page])})
}

// keep takes up which pages the user has agreed to open.
func (p *openPages) keep(questions []inputRequest) {
	for i := range questions {
		q := &questions[i]
		if q.page != "" && q.err == nil && !p.Keep(q.page, q.answer) {
			delete(p.ids, q.page)
		}
	}
}

// waitForPages waits before the server is asked again whether the user is done.
func (d *dialogue) waitForPages(ctx context.Context) error {
	wait, ok := d.pages.Next()
	if !ok {
		return visit.TooLong(d.req.Method, nil)
	}
	return pause(ctx, wait)
}

// closePages tells the client of pages that the server asks for no more.
func (d *dialogue) closePages(ctx context.Context, questions []inputRequest) {
	wanted := make([]string, len(questions))
	for i := range questions {
		wanted[i] = questions[i].page
	}
	for _, url := range d.pages.Retain(wanted) {
		params := jsonrpc.Edited(&jsonrpc.Value{},
			jsonrpc.Edit{Name: "elicitationId", Value: jsonrpc.AppendString(nil, d.pages.ids[url])})
		delete(d.pages.ids, url)
		// A client that has gone needs no telling.
		_ = d.c.Notify(ctx, &mcp.Notification{Method: mcp.NotificationElicitationComplete, Params: params})
	}
}

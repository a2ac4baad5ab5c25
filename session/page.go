package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// MaxPageWait is how long a call waits for its user to be done with a page that
// a server has asked to open.
const MaxPageWait = 10 * time.Minute

// minPageWait is before the server is asked for the first time whether the user
// is done.
const minPageWait = time.Second

// pages are the URLs that a client has been asked to open, with its answers. A
// modern server asks for one again as long as its user is not done there, and a
// legacy client, which has answered once, is told when that is over
// (notifications/elicitation/complete; 2025-11-25, client/elicitation).
type pages struct {
	ids     map[string]string // by URL
	answers map[string][]byte // by URL, of those that the user agreed to open
	since   time.Time         // nothing but pages has been waited for
}

// pageOf returns the URL that a question asks to open, "" if it asks for
// something else.
func pageOf(q *mcp.Request) string {
	if mode, _ := q.Params.LookupString("mode"); q.Method != mcp.MethodElicit || mode != "url" {
		return ""
	}
	url, _ := q.Params.LookupString("url")
	return url
}

// samePage returns the first question that asks to open the page which question i asks
// to open, nil if that is i itself or it asks for something else.
func samePage(questions []inputRequest, i int) *inputRequest {
	for j := range questions[:i] {
		if page := questions[i].page; page != "" && questions[j].page == page {
			return &questions[j]
		}
	}
	return nil
}

// answer answers questions that have been answered before, and returns how many
// have not.
func (p *pages) answer(questions []inputRequest) (unanswered int) {
	for i := range questions {
		q := &questions[i]
		if q.answer = p.answers[q.page]; q.answer == nil {
			unanswered++
		}
	}
	if unanswered > 0 {
		p.since = time.Time{}
	}
	return unanswered
}

// name gives the elicitation of a page the id that legacy clients want.
func (p *pages) name(q *inputRequest) {
	if q.page == "" {
		return
	}
	if p.ids == nil {
		p.ids, p.answers = make(map[string]string), make(map[string][]byte)
	}
	if p.ids[q.page] == "" {
		p.ids[q.page] = rand.Text()
	}
	q.req.Params = jsonrpc.Edited(&q.req.Params,
		jsonrpc.Edit{Name: "elicitationId", Value: jsonrpc.AppendString(nil, p.ids[q.page])})
}

// keep takes up which pages the user has agreed to open.
func (p *pages) keep(questions []inputRequest) {
	for i := range questions {
		q := &questions[i]
		if q.page == "" || q.err != nil {
			continue
		}
		answer := jsonrpc.Trusted(q.answer)
		if action, _ := answer.LookupString("action"); action == "accept" {
			p.answers[q.page] = q.answer
		} else {
			delete(p.ids, q.page)
		}
	}
}

// waitForPages waits before the server is asked again whether the user is done.
func (d *dialogue) waitForPages(ctx context.Context) error {
	if d.pages.since.IsZero() {
		d.pages.since, d.open = time.Now(), backoff{wait: minPageWait}
	}
	if time.Since(d.pages.since)+d.open.wait > MaxPageWait {
		return &mcp.CallError{
			Method: d.req.Method, Kind: mcp.LimitExceeded, Limit: "MaxPageWait", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the user has not been done with a page for %v", MaxPageWait),
		}
	}
	return d.open.pause(ctx)
}

// closePages tells the client of pages that the server asks for no more.
func (d *dialogue) closePages(ctx context.Context, questions []inputRequest) {
	if len(d.pages.answers) == 0 {
		return
	}
	wanted := make(map[string]bool, len(questions))
	for i := range questions {
		wanted[questions[i].page] = true
	}
	for url := range d.pages.answers {
		if wanted[url] {
			continue
		}
		params := jsonrpc.Edited(&jsonrpc.Value{},
			jsonrpc.Edit{Name: "elicitationId", Value: jsonrpc.AppendString(nil, d.pages.ids[url])})
		delete(d.pages.answers, url)
		delete(d.pages.ids, url)
		// A client that has gone needs no telling.
		_ = d.c.Notify(ctx, &mcp.Notification{Method: mcp.NotificationElicitationComplete, Params: params})
	}
}

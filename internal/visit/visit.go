// Package visit holds what a call knows of the pages that its server wants its user to
// open (2025-11-25 and 2026-07-28, client/elicitation). The user is asked once for
// each, and then the call is made again for as long as the server wants the same ones:
// only the server knows when its user is done there.
package visit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// MaxWait is how long a call waits for pages that its user has agreed to open, and for
// nothing else.
const MaxWait = 10 * time.Minute

// Waits before a call is made again: the first one, each later one being twice as long,
// and the longest.
const (
	minWait = time.Second
	maxWait = 15 * time.Second
)

// Pages are those of one call. The zero value is ready. They are not safe for
// concurrent use.
type Pages struct {
	answers map[string][]byte // by URL, of those that the user agreed to open
	since   time.Time         // nothing but pages has been waited for
	wait    time.Duration     // the next one
}

// URL returns the URL that a question asks to open, "" if it asks for something else.
func URL(q *mcp.Request) string {
	if mode, _ := q.Params.LookupString("mode"); q.Method != mcp.MethodElicit || mode != mcp.ElicitURL {
		return ""
	}
	url, _ := q.Params.LookupString("url")
	return url
}

// Required returns the questions in the error of a legacy server that wants pages to be
// opened first (2025-11-25, client/elicitation, URL Elicitation Required Error), none if
// it is not one, or names more than limit.
func Required(err error, limit int) []mcp.Request {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != jsonrpc.CodeURLElicitationRequired {
		return nil
	}
	raw, _ := refused.Data.Lookup("elicitations")
	elements := jsonrpc.Elements(raw)
	if len(elements) > limit {
		return nil
	}
	questions := make([]mcp.Request, len(elements))
	for i, page := range elements {
		questions[i] = mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted(page)}
		if URL(&questions[i]) == "" {
			return nil
		}
	}
	return questions
}

// Answer returns what the user has answered for a page, nil if there is no answer that
// could be given again.
func (v *Pages) Answer(url string) []byte { return v.answers[url] }

// Keep keeps the answer for a page, and reports whether it is that the user has agreed
// to open it. Who has not is asked again.
func (v *Pages) Keep(url string, answer []byte) bool {
	result := jsonrpc.Trusted(answer)
	if action, _ := result.LookupString("action"); url == "" || mcp.ElicitAction(action) != mcp.Accept {
		return false
	}
	if v.answers == nil {
		v.answers = make(map[string][]byte)
	}
	v.answers[url] = answer
	return true
}

// Retain forgets pages that are not among those which the server wants now, and returns
// them. The user is done there; if they are wanted later, it is for something else.
func (v *Pages) Retain(wanted []string) (done []string) {
	for url := range v.answers {
		if !slices.Contains(wanted, url) {
			delete(v.answers, url)
			done = append(done, url)
		}
	}
	return done
}

// Asked says that the user is asked something, so that what the call waits for is not
// pages alone.
func (v *Pages) Asked() { v.since = time.Time{} }

// Next returns how long to wait before the call is made again, and false if that would
// be longer than MaxWait in all.
func (v *Pages) Next() (time.Duration, bool) {
	if v.since.IsZero() {
		v.since, v.wait = time.Now(), minWait
	}
	wait := v.wait
	v.wait = min(2*wait, maxWait)
	return wait, time.Since(v.since)+wait <= MaxWait
}

// TooLong is the failure of a call whose user has not been done within MaxWait. Refusal
// is the error that the server has answered with, nil if it was a result.
func TooLong(method string, refusal error) error {
	failure := &mcp.CallError{
		Method: method, Kind: mcp.LimitExceeded, Limit: "MaxPageWait", Outcome: mcp.Answered,
		Public: fmt.Sprintf("the user has not been done with a page for %v", MaxWait),
	}
	if refusal != nil {
		failure.Err = fmt.Errorf("%s: %w", failure.Public, refusal)
	}
	return failure
}

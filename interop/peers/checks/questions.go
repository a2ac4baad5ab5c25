package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// question calls a tool that asks the client something and uses the answer.
func (r *runner) question(ctx context.Context, p call) error {
	var text string
	err := r.eventually(8*time.Second, "answer not used", func() (bool, error) {
		result, err := r.client.Call(ctx, p.Tool, p.Args, "")
		if err != nil {
			return false, err
		}
		text = result.Text
		return strings.Contains(text, p.Want), nil
	})
	if err != nil {
		return fmt.Errorf("%w (last result %.300q)", err, text)
	}
	return nil
}

// decline answers a form with the other two actions.
func (r *runner) decline(ctx context.Context) error {
	p := r.opts.Profile.Decline
	defer r.seen.answer("accept")
	for _, action := range slices.Sorted(maps.Keys(p.Want)) {
		r.seen.answer(action)
		if err := r.question(ctx, call{Tool: p.Tool, Args: p.Args, Want: p.Want[action]}); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
	}
	return nil
}

// A PageOpener is a [Client] that itself has the pages opened which a legacy server
// requires, and makes the call again.
type PageOpener interface {
	OpensPages()
}

// urlError: a legacy client gets -32042 as it came, unless it sees to that itself,
// and asks again once the user has been there. A modern one has no such error: its
// call ends by itself.
func (r *runner) urlError(ctx context.Context) error {
	p := r.opts.Profile.URLError
	if _, opens := r.client.(PageOpener); !r.modern && !opens {
		_, err := r.client.Call(ctx, p.Tool, p.Args, "")
		if _, code, ok := r.client.Refused(err); !ok || code != -32042 {
			return fmt.Errorf("first call: %v, want error -32042", err)
		}
	}
	return r.question(ctx, p)
}

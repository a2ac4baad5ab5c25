package park_test

import (
	"context"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

// TestQuestionsAfterTheEndLeaveNothing: a handler has left a goroutine behind, which asks
// for the first time while the handler returns.
func TestQuestionsAfterTheEndLeaveNothing(t *testing.T) {
	var left sync.WaitGroup
	leaveBehind := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		for range 4 {
			left.Go(func() { _, _ = elicit(ctx, caller, "?") })
		}
		return result(`1`)
	}
	lot := park.New(mcp.HandlerFunc(leaveBehind), park.Options{})
	defer lot.Close()
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 500 {
				ctx, leave := context.WithCancel(t.Context())
				o := do(ctx, lot, greeting)
				for o.err == nil && o.result.Type() == mcp.InputRequired { // it was asked in time
					o = do(ctx, lot, retry(greeting, o.state(t), `{}`))
				}
				leave()
			}
		})
	}
	calls.Wait()
	left.Wait()
	if n := lot.Len(); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

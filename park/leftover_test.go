package park_test

import (
	"context"
	"errors"
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

// TestQuestionAfterTheEndIsNotCounted: as above, but the handler has returned for certain.
func TestQuestionAfterTheEndIsNotCounted(t *testing.T) {
	returned, failed := make(chan struct{}), make(chan error)
	lot := park.New(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		go func() {
			<-returned
			_, err := elicit(context.WithoutCancel(ctx), caller, "?")
			failed <- err
		}()
		return result(`1`)
	}), park.Options{})
	defer lot.Close()
	do(t.Context(), lot, greeting)
	close(returned)
	if err := <-failed; !errors.Is(err, mcp.ErrCannotAsk) {
		t.Errorf("the question fails with %v", err)
	}
	if n := lot.Len(); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

// TestQuestionThatNobodyWaitsForIsNotPut: who asks has gone before.
func TestQuestionThatNobodyWaitsForIsNotPut(t *testing.T) {
	counted := make(chan int, 1)
	var lot *park.Lot
	lot = park.New(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		asking, gone := context.WithCancel(ctx)
		gone()
		_, err := elicit(asking, caller, "?")
		counted <- lot.Len()
		return mcp.Result{}, err
	}), park.Options{})
	defer lot.Close()
	if o := do(t.Context(), lot, greeting); !errors.Is(o.err, context.Canceled) {
		t.Errorf("the client gets %v", o)
	}
	if n := <-counted; n != 0 {
		t.Errorf("%d calls count that have asked nothing", n)
	}
}

package mcp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

type releasing struct {
	mcp.NoCaller

	retry *time.Duration
}

var errNotReleased = errors.New("not released")

func (r releasing) Release(_ context.Context, retry time.Duration) error {
	*r.retry = retry
	return errNotReleased
}

func TestReleaseReachesCallersThatCan(t *testing.T) {
	var got time.Duration
	if err := mcp.Release(t.Context(), releasing{retry: &got}, time.Second); !errors.Is(err, errNotReleased) || got != time.Second {
		t.Errorf("releasing with %v: %v", got, err)
	}
	if err := mcp.Release(t.Context(), mcp.NoCaller{}, time.Second); err != nil {
		t.Errorf("nobody to release: %v", err)
	}
}

func TestRevisionsWithPolling(t *testing.T) {
	for _, r := range append(append(mcp.LegacyRevisions(), mcp.ModernRevisions()...), "2025-12-01", "") {
		if got, want := r.HasPolling(), r == mcp.Revision20251125; got != want {
			t.Errorf("%q: %v", r, got)
		}
	}
}

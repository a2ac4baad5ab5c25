package server_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// A subscriber is told of changes in one go, until it fails.
type subscriber struct {
	mcp.NoCaller
	fail func() error // nil for never

	told [][]string
}

func (c *subscriber) Notify(_ context.Context, n *mcp.Notification) error {
	c.told = append(c.told, []string{n.Method})
	return nil
}

func (c *subscriber) NotifyAll(_ context.Context, list []*mcp.Notification) error {
	if c.fail != nil {
		return c.fail()
	}
	var told []string
	for _, n := range list {
		told = append(told, strings.TrimPrefix(n.Method, "notifications/")+string(n.Params.Raw()))
	}
	c.told = append(c.told, told)
	return nil
}

func subscribe(t *testing.T, s *server.Server, c *subscriber) mcp.Subscription {
	t.Helper()
	req := request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["u:a","u:b/","u:a"]}}`)
	subscription, err := s.Subscribe(t.Context(), req, c)
	if err != nil {
		t.Fatal(err)
	}
	return subscription
}

func TestSubscriptionTellsChangesInOneGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		c := new(subscriber)
		subscription := subscribe(t, s, c)
		s.Changed("u:a", "u:c", "u:b", "u:b/1", "u:a")
		addTools(s, "new")
		time.Sleep(time.Second)
		s.Changed("u:b/")
		time.Sleep(time.Second)
		result, err := subscription.End()
		if err != nil || !strings.HasPrefix(string(result.Raw()), `{"resultType":"complete"`) {
			t.Errorf("it ended with %s, %v", result.Raw(), err)
		}
		s.Changed("u:a") // is nobody's
		time.Sleep(time.Second)
		want := [][]string{
			{mcp.NotificationAcknowledged},
			{"tools/list_changed", `resources/updated{"uri":"u:a"}`, `resources/updated{"uri":"u:b/1"}`},
			{`resources/updated{"uri":"u:b/"}`},
		}
		if !slices.EqualFunc(c.told, want, slices.Equal[[]string]) {
			t.Errorf("it was told %q", c.told)
		}
	})
}

func TestSubscriptionThatCannotBeTold(t *testing.T) {
	for name, test := range map[string]struct {
		fail func() error
		want error
	}{
		"an error": {func() error { return errors.New("gone") }, errors.New("gone")},
		"a panic":  {func() error { panic("a caller's fault") }, &jsonrpc.Error{Code: jsonrpc.CodeInternalError}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := watched(nil)
				subscription := subscribe(t, s, &subscriber{fail: test.fail})
				s.Changed("u:a")
				<-subscription.Failed()
				s.Changed("u:b/") // it is told no more
				_, err := subscription.End()
				if err == nil || !errors.Is(err, test.want) && err.Error() != test.want.Error() {
					t.Errorf("it ended with %v, not %v", err, test.want)
				}
			})
		})
	}
}

// A change that has not been told when a subscription ends is told nobody, and
// holds nothing up.
func TestSubscriptionEndsWithChangesUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		c := new(subscriber)
		subscription := subscribe(t, s, c)
		s.Changed("u:a")
		if _, err := subscription.End(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(c.told) != 1 {
			t.Errorf("it was told %q", c.told)
		}
	})
}

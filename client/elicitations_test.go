package client_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// completion tells that a page has been completed.
func completion(id string) *mcp.Notification {
	return &mcp.Notification{Method: mcp.NotificationElicitationComplete, Params: jsonrpc.Trusted([]byte(`{"elicitationId":"` + id + `"}`))}
}

// TestEndsOfElicitations: the end of each page is told once, whether it comes in a
// call or outside; of pages that nobody was asked to open nothing is.
func TestEndsOfElicitations(t *testing.T) {
	page := func(id string) *mcp.Request {
		return &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(
			`{"mode":"url","message":"?","url":"https://a.example/` + id + `","elicitationId":"` + id + `"}`))}
	}
	long := strings.Repeat("x", 100_000) // what is kept is bounded
	synctest.Test(t, func(t *testing.T) {
		station := newStation(mcp.Legacy)
		station.ask(func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			for _, id := range []string{"1", "2", "3", long} {
				if _, err := caller.Ask(ctx, page(id)); err != nil {
					return mcp.Result{}, err
				}
			}
			for _, id := range []string{"2", "foreign"} {
				if err := caller.Notify(ctx, completion(id)); err != nil {
					return mcp.Result{}, err
				}
			}
			return text("done"), nil
		})
		done := make(chan string, 10)
		c := connect(t, station, &client.Options{
			ElicitURL: true, ElicitDone: func(id string) { done <- id },
			Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: mcp.Accept}, nil
			},
		})
		if _, err := told(t, c); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"1", "2", "foreign", "", long, "1", "3"} {
			station.tell(mcp.NotificationElicitationComplete, `{"elicitationId":"`+id+`"}`)
			synctest.Wait()
		}
		close(done)
		var got []string
		for id := range done {
			got = append(got, id)
		}
		if strings.Join(got, " ") != "2 1 3" {
			t.Errorf("told of %.200q", got)
		}
	})
}

// TestRefusedCallIsMadeAgainWhenItsPagesAreCompleted_B148: it does not wait any
// longer.
func TestRefusedCallIsMadeAgainWhenItsPagesAreCompleted_B148(t *testing.T) {
	for _, told := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const afterwards = 20 * time.Second // between two attempts of the client's own
			began := time.Now()
			attempts := 0
			s := newStation(mcp.Legacy)
			s.ask(func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				attempts++
				if time.Since(began) >= afterwards {
					return text("done"), nil
				}
				return mcp.Result{}, peerError(`{"code":-32042,"message":"first","data":{"elicitations":[` +
					`{"mode":"url","elicitationId":"1","message":"?","url":"https://a.example/"}]}}`)
			})
			c := connect(t, s, &client.Options{ElicitURL: true, Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: mcp.Accept}, nil
			}})
			if told {
				time.AfterFunc(afterwards, func() { s.tell(mcp.NotificationElicitationComplete, `{"elicitationId":"1"}`) })
			}
			if _, err := c.CallTool(t.Context(), "work", nil, nil); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); (took == afterwards) != told {
				t.Errorf("told: %t; it took %v in %d attempts", told, took, attempts)
			}
		})
	}
}

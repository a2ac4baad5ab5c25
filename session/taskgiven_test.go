package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// givers are clients that make tasks for a server, numbered from 1 in the order in which
// they are made.
type givers struct {
	t         *testing.T
	w         *slowTask
	c         *session.Client
	calls     map[string]*inflight.Call
	running   map[string]*running
	listening map[string]*running
	made      int
	asked     int
	life      time.Duration
	state     string // in which the tasks are that are asked for
}

func newGivers(t *testing.T) *givers {
	w := newSlowTask()
	w.arrived = make(chan struct{}, 4*session.MaxTasks)
	return &givers{
		t: t, w: w, c: toTasks(t, w.wire), life: 24 * time.Hour, state: "working",
		calls: map[string]*inflight.Call{}, running: map[string]*running{}, listening: map[string]*running{},
	}
}

// arrive has a client listen, and call a tool under which it is asked.
func (g *givers) arrive(name string) {
	l, listening := listen(g.t, g.c, mcp.Metadata{Revision: legacyRev, Session: name}, mcp.Filter{Session: true})
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(fmt.Appendf(nil, `{"from":%q,"taskId":"x","status":%q}`, name, g.state)), nil
	}
	caller := newListener()
	caller.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(fmt.Appendf(nil, `{"task":{"taskId":"%d","ttl":%d}}`, g.made, g.life.Milliseconds())), nil
	}
	g.listening[name] = listening
	g.running[name] = handle(g.t, g.c, of(name, mcp.MethodCallTool, `{"name":"x"}`), caller)
	g.calls[name] = <-g.w.creating
}

// leave ends all that a client has in flight.
func (g *givers) leave(name string) {
	answer(g.calls[name], `{}`)
	<-g.running[name].done
	g.listening[name].stop()
	delete(g.calls, name)
	synctest.Wait()
}

// end ends all.
func (g *givers) end() {
	for name := range g.calls {
		g.leave(name)
	}
}

// give has a client make n tasks.
func (g *givers) give(name string, n int) {
	for range n {
		g.made++
		g.c.Asked(g.t.Context(), scan(g.t, `{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"task":{}}}`), g.calls[name])
		synctest.Wait()
	}
}

// ask has the server ask for a task and returns what it hears.
func (g *givers) ask(method string, id int) string {
	g.asked++
	g.c.Asked(g.t.Context(), scan(g.t, fmt.Sprintf(`{"jsonrpc":"2.0","id":"about %d","method":%q,"params":{"taskId":"%d"}}`, g.asked, method, id)), nil)
	synctest.Wait()
	return strings.Join(g.w.all(fmt.Sprintf(`reply "about %d"`, g.asked)), "; ")
}

// is fails the test unless a task is that of a client, "" for one that is not known.
func (g *givers) is(id int, name string) {
	g.t.Helper()
	want := "error -32603" // of either of several
	if name != "" {
		want = fmt.Sprintf(`{"from":%q`, name)
	}
	if got := g.ask(mcp.MethodGetTask, id); !strings.Contains(got, want) {
		g.t.Errorf("asked for task %d the server got %q, want %s", id, got, want)
	}
}

// tell has a client tell the state of a task.
func (g *givers) tell(name string, id int, state string) {
	n := of(name, mcp.NotificationTaskStatus, fmt.Sprintf(`{"taskId":"%d","status":%q}`, id, state))
	n.Notification = true
	if _, err := g.c.Handle(g.t.Context(), n, mcp.NoCaller{}); err != nil {
		g.t.Error(err)
	}
}

// TestTasksOfOneClientAreBounded: it takes no places of others. Of its own tasks one that
// has ended makes room, or else the oldest.
func TestTasksOfOneClientAreBounded_TG2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGivers(t)
		defer g.end()
		g.arrive("b")
		g.give("b", 1)
		g.arrive("a")
		g.give("a", session.MaxTasksPerClient)
		g.is(2, "a")
		g.give("a", 1)
		g.is(2, "")
		g.is(3, "a")
		g.tell("b", 4, "completed") // it is not b's
		g.tell("a", 5, "completed")
		g.tell("a", 6, "working")
		g.give("a", 1)
		g.is(5, "")
		for _, id := range []int{3, 4, 6, g.made} {
			g.is(id, "a")
		}
		g.is(1, "b")
	})
}

// TestTasksOfAllClientsAreBounded: at the limit those make room that can best be
// forgotten, and none that goes on and whose client is there.
func TestTasksOfAllClientsAreBounded_TG2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGivers(t)
		defer g.end()
		const each = session.MaxTasksPerClient
		for i := range session.MaxTasks / each {
			name := fmt.Sprint("c", i)
			g.arrive(name)
			if i == 9 {
				g.life = time.Hour
			}
			g.give(name, each)
		}
		g.life = 24 * time.Hour
		g.arrive("late")
		g.give("late", 1)
		g.is(g.made, "")
		g.tell("c0", 10, "failed")
		g.state = "cancelled"
		g.is(each+10, "c1") // and says so
		g.state = "working"
		g.leave("c2")
		g.ask(mcp.MethodTaskResult, 3*each+10)
		time.Sleep(2 * time.Hour)

		late := func(name string, forgotten int, of string) {
			t.Helper()
			g.is(forgotten, of)
			g.give(name, 1)
			g.is(g.made, name)
			g.is(forgotten, "")
		}
		late("late", 9*each+1, "c9") // their time is over
		g.give("late", each-1)
		g.arrive("later")
		late("later", 3*each+10, "c3") // the server has its result
		g.give("later", each-1)        // the client of others is gone
		g.is(3*each-1, "")
		g.arrive("last")
		g.give("last", 1)
		g.is(3*each, "")
		late("last", 10, "c0") // it has ended
		late("last", each+10, "c1")
		g.give("last", 1)
		g.is(g.made, "") // all others go on
		g.is(1, "c0")
	})
}

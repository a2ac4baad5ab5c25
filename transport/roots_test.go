package transport_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport"
)

const rootedCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`

// rootedChild plays a server that asks for the roots right after its handshake. It
// returns when it has been told that nobody can be asked.
func rootedChild(t *testing.T, server *peer) {
	t.Helper()
	server.say(`{"jsonrpc":"2.0","id":"r1","method":"roots/list"}`)
	if got := server.message(); got.ID.String() != `"r1"` || !got.Failed {
		t.Errorf("answered %s", got.Body.Raw())
	}
}

// TestServerGetsTheRootsOfAModernClient before the call with which they are asked
// for, which is answered by input_required.
func TestServerGetsTheRootsOfAModernClient_B041_B151(t *testing.T) {
	conn, server := connect(t, transport.DialOptions{Capabilities: []byte(`{"roots":{}}`)}, transport.LineOptions{})
	rootedChild(t, server)
	p, _ := serve(t, conn, transport.ServeOptions{})
	var playing sync.WaitGroup
	playing.Go(func() {
		server.answer(server.expect(mcp.MethodPing), `{}`)
		server.expect(mcp.NotificationRootsListChanged)
		server.say(`{"jsonrpc":"2.0","id":"r2","method":"roots/list"}`)
		if got := server.message(); string(got.Body.Raw()) != `{"roots":[{"uri":"file:///a"}]}` {
			t.Errorf("answered %s", got.Body.Raw())
		}
		server.answer(server.expect(mcp.MethodPing), `{}`)
		call := server.expect(mcp.MethodCallTool)
		// In a call the client itself is asked.
		server.say(`{"jsonrpc":"2.0","id":"r3","method":"roots/list"}`)
		answer := server.message()
		server.answer(call, `{"roots":`+string(answer.Body.Raw())+`}`)
	})
	answerRoots := func(id, key, uri string) {
		t.Helper()
		m := p.message()
		if got := m.Body.Get("inputRequests"); string(got.Raw()) != `{"`+key+`":{"method":"roots/list","params":{}}}` {
			t.Fatalf("got %s", m.Body.Raw())
		}
		state, _ := m.Body.Lookup("requestState")
		p.say(strings.Replace(strings.Replace(rootedCall, `"id":1`, `"id":`+id, 1), `"name":"x"`,
			`"name":"x","requestState":`+string(state)+`,"inputResponses":{"`+key+`":{"roots":[{"uri":"`+uri+`"}]}}`, 1))
	}
	p.say(rootedCall)
	answerRoots("2", "q1", "file:///a")
	answerRoots("3", "q2", "file:///b")
	if got := p.line(); got != `{"jsonrpc":"2.0","id":3,"result":{"roots":{"roots":[{"uri":"file:///b"}]},"resultType":"complete"}}` {
		t.Errorf("got %s", got)
	}
	playing.Wait()
}

// TestCallWhoseClientNamesNoRoots is not sent when its client has not come back.
func TestCallWhoseClientNamesNoRoots_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server := connect(t, transport.DialOptions{Capabilities: []byte(`{"roots":{}}`)}, transport.LineOptions{})
		server.patience = time.Hour
		rootedChild(t, server)
		p, _ := serve(t, conn, transport.ServeOptions{})
		p.patience = time.Hour
		var playing sync.WaitGroup
		playing.Go(func() {
			server.answer(server.expect(mcp.MethodPing), `{}`)
			server.answer(server.expect(mcp.MethodListTools), `{}`)
		})
		p.say(rootedCall)
		p.line()
		time.Sleep(park.DefaultLife + time.Second)
		p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		if got := p.message(); got.ID.String() != "2" || got.Kind != jsonrpc.Response {
			t.Errorf("got %s", got.Body.Raw())
		}
		playing.Wait()
	})
}

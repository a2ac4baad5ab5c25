package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestProbe_B110: every answer to server/discover that is not modern leads to
// initialize (2026-07-28, stdio, Backward Compatibility).
func TestProbe_B110_B113(t *testing.T) {
	const modern, legacy, neither = mcp.Modern, mcp.Legacy, mcp.NoEra
	for _, tt := range []struct {
		name, answer string // %s is the id
		era          mcp.Era
	}{
		{"-32601", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, legacy},
		{"-32602", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Invalid params"}}`, legacy},
		{"-32000", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Not initialized"}}`, legacy},
		{"-32600 with a null id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing ID"}}`, legacy},
		{"an error without id", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Missing ID"}}`, legacy},
		{"an empty result", `{"jsonrpc":"2.0","id":%s,"result":{}}`, legacy},
		{"a legacy InitializeResult", `{"jsonrpc":"2.0","id":%s,"result":` + initialized(mcp.Revision20250618) + `}`, legacy},
		{"a result of another type", `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"vendor","supportedVersions":["2026-07-28"],"capabilities":{}}}`, legacy},
		{"B113 without supportedVersions", `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{}}}`, legacy},
		{"only legacy revisions", `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{},"supportedVersions":["2025-11-25"]}}`, legacy},
		{"-32022 with only legacy revisions", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"","data":{"supported":["2025-11-25"]}}}`, legacy},
		{"-32022 without revisions", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":""}}`, legacy},
		{"modern", `{"jsonrpc":"2.0","id":%s,"result":` + discovered + `}`, modern},
		{"B113 without resultType", `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{"tools":{}},"supportedVersions":["2026-07-28"]}}`, modern},
		{"both eras", `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{},"supportedVersions":["2025-11-25","2026-07-28"]}}`, modern},
		{"unknown modern revisions", `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{},"supportedVersions":["2031-01-01"]}}`, neither},
		{"-32022 with unknown revisions", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"","data":{"supported":["2031-01-01"]}}}`, neither},
		{"-32021", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32021,"message":"","data":{"requiredCapabilities":{"roots":{}}}}}`, neither},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, done := dial(t, transport.DialOptions{}, transport.LineOptions{})
			m := p.expect(mcp.MethodDiscover)
			if revision, _ := m.Meta.LookupString(mcp.MetaProtocolVersion); revision != string(mcp.NewestModern) {
				t.Errorf("_meta is %s", m.Meta.Raw())
			}
			p.say(strings.Replace(tt.answer, "%s", m.ID.String(), 1))
			if tt.era == legacy {
				p.handshake(mcp.Revision20241105)
			}
			d := receive(t, "the outcome", done)
			switch {
			case tt.era == neither:
				if d.err == nil || errors.Is(d.err, transport.ErrProbeEnded) {
					t.Errorf("err %v", d.err)
				}
				if strings.Contains(tt.answer, "2031") && (!errors.Is(d.err, session.ErrRevision) || !strings.Contains(d.err.Error(), "2031-01-01")) {
					t.Errorf("err %v", d.err)
				}
			case d.err != nil:
				t.Error(d.err)
			case d.conn.Server().Era != tt.era:
				t.Errorf("era %v", d.conn.Server().Era)
			}
		})
	}
}

func TestUnsupportedRevisionIsAskedForAgain(t *testing.T) {
	p, done := dial(t, transport.DialOptions{}, transport.LineOptions{})
	p.fail(p.expect(mcp.MethodDiscover), jsonrpc.CodeUnsupportedVersion, `{"supported":["2031-01-01","2026-07-28"],"requested":"x"}`)
	p.answer(p.expect(mcp.MethodDiscover), discovered)
	if d := receive(t, "the outcome", done); d.err != nil || d.conn.Server().Revision != mcp.Revision20260728 {
		t.Errorf("err %v", d.err)
	}
}

// TestProbeOfASilentServer_B110: after five seconds initialize is sent as well,
// and the first usable answer decides.
func TestProbeOfASilentServer_B110(t *testing.T) {
	const refusal, modernRefusal = "refusal", "modern refusal"
	for _, tt := range []struct {
		name string
		// after initialize came: what is answered to which, in this order
		answers []string // "discover:RESULT" or "initialize:RESULT", or "... refusal"
		era     mcp.Era
	}{
		{"initialize is answered", []string{"initialize:" + initialized(mcp.Revision20250618)}, mcp.Legacy},
		{"discover is answered late", []string{"discover:" + discovered}, mcp.Modern},
		{"discover is answered after initialize", []string{"initialize:" + initialized(mcp.Revision20250618), "discover:" + discovered}, mcp.Legacy},
		{"discover is refused late", []string{"discover:" + refusal, "initialize:" + initialized(mcp.Revision20250618)}, mcp.Legacy},
		{"initialize is refused", []string{"initialize:" + refusal}, mcp.NoEra},
		{"initialize is refused, then discover is answered", []string{"initialize:" + refusal, "wait:4s", "discover:" + discovered}, mcp.Modern},
		{"initialize is refused by a modern error, then discover is answered", []string{"initialize:" + modernRefusal, "wait:20s", "discover:" + discovered}, mcp.Modern},
		{"initialize is refused, then discover", []string{"initialize:" + refusal, "discover:" + refusal}, mcp.NoEra},
		{"nothing is answered", nil, mcp.NoEra},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link, p := newLink(t, transport.LineOptions{})
				p.patience = time.Hour
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				done := make(chan dialed, 1)
				began := time.Now()
				go func() {
					conn, err := transport.Dial(ctx, link, transport.DialOptions{})
					done <- dialed{conn, err}
				}()
				requests := map[string]*jsonrpc.Message{"discover": p.expect(mcp.MethodDiscover), "initialize": p.expect(mcp.MethodInitialize)}
				if took := time.Since(began); took != transport.ProbeSilence {
					t.Errorf("initialize came after %v", took)
				}
				for _, a := range tt.answers {
					to, what, _ := strings.Cut(a, ":")
					switch {
					case to == "wait":
						pause, err := time.ParseDuration(what)
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(pause)
					case what == refusal:
						p.fail(requests[to], jsonrpc.CodeInternalError, "null")
					case what == modernRefusal:
						p.fail(requests[to], jsonrpc.CodeUnsupportedVersion, `{"supported":["2026-07-28"]}`)
					default:
						p.answer(requests[to], what)
					}
				}
				go p.drain()
				d := <-done
				if (d.err == nil) != (tt.era != mcp.NoEra) {
					t.Fatalf("err %v", d.err)
				}
				if d.err == nil {
					if d.conn.Server().Era != tt.era {
						t.Errorf("era %v", d.conn.Server().Era)
					}
					if err := d.conn.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestServerThatExitsAtTheProbe_B110(t *testing.T) {
	for _, when := range []string{mcp.MethodDiscover, mcp.MethodInitialize} {
		t.Run("at "+when, func(t *testing.T) {
			p, done := dial(t, transport.DialOptions{}, transport.LineOptions{})
			m := p.expect(mcp.MethodDiscover)
			if when == mcp.MethodInitialize {
				p.fail(m, jsonrpc.CodeInvalidRequest, "null")
				p.expect(mcp.MethodInitialize)
			}
			if err := p.conn.Close(); err != nil {
				t.Fatal(err)
			}
			if d := receive(t, "the failure", done); !errors.Is(d.err, transport.ErrProbeEnded) {
				t.Errorf("err %v", d.err)
			}
		})
	}
	t.Run("not when the era is known", func(t *testing.T) {
		p, done := dial(t, transport.DialOptions{Era: mcp.Legacy}, transport.LineOptions{})
		p.expect(mcp.MethodInitialize)
		if err := p.conn.Close(); err != nil {
			t.Fatal(err)
		}
		if d := receive(t, "the failure", done); d.err == nil || errors.Is(d.err, transport.ErrProbeEnded) {
			t.Errorf("err %v", d.err)
		}
	})
}

func TestServerOfBothErasIsSpokenToInThePreferredOne(t *testing.T) {
	p, done := dial(t, transport.DialOptions{Prefer: mcp.Legacy}, transport.LineOptions{})
	p.handshake(mcp.Revision20251125)
	if d := receive(t, "the outcome", done); d.err != nil || d.conn.Server().Era != mcp.Legacy {
		t.Errorf("err %v", d.err)
	}
	for _, answer := range []string{discovered, ""} {
		t.Run("refused "+answer, func(t *testing.T) {
			p, done := dial(t, transport.DialOptions{Prefer: mcp.Legacy}, transport.LineOptions{})
			p.fail(p.expect(mcp.MethodInitialize), jsonrpc.CodeMethodNotFound, "null")
			m := p.expect(mcp.MethodDiscover)
			if answer == "" {
				p.fail(m, jsonrpc.CodeMethodNotFound, "null")
				if d := receive(t, "the outcome", done); !errors.Is(d.err, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}) {
					t.Errorf("err %v", d.err)
				}
				return
			}
			p.answer(m, answer)
			if d := receive(t, "the outcome", done); d.err != nil || d.conn.Server().Era != mcp.Modern {
				t.Errorf("err %v", d.err)
			}
		})
	}
}

func TestKnownEra(t *testing.T) {
	conn, _ := connect(t, transport.DialOptions{Era: mcp.Modern}, transport.LineOptions{})
	info := conn.Server()
	if info.Era != mcp.Modern || info.Revision != mcp.Revision20260728 || string(info.Discover.Raw()) != discovered {
		t.Errorf("info %v %v %s", info.Era, info.Revision, info.Discover.Raw())
	}
	conn, _ = connect(t, transport.DialOptions{}, transport.LineOptions{})
	if info := conn.Server(); info.Era != mcp.Legacy || info.Revision != mcp.Revision20250618 ||
		!strings.Contains(string(info.Discover.Raw()), `"supportedVersions":["2025-06-18"]`) {
		t.Errorf("info %v", fmt.Sprint(info))
	}
}

// TestKnownModernServerIsNotAsked connects without a message.
func TestKnownModernServerIsNotAsked(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	link := transport.NewLineLink(ours, ours, ours.Close, transport.LineOptions{})
	c, err := transport.Dial(t.Context(), link, transport.DialOptions{Era: mcp.Modern, Revision: mcp.NewestModern})
	if err != nil {
		t.Fatal(err) // nobody reads what it would have written
	}
	if got := c.Server().Revision; got != mcp.NewestModern {
		t.Errorf("the revision is %q", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

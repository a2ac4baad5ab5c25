package park_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

func tool(params string) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params)),
		Meta: mcp.Metadata{Revision: mcp.NewestModern, Capabilities: []byte(`{"elicitation":{},"sampling":{},"roots":{}}`)},
	}
}

func of(req *mcp.Request, issuer, subject string) *mcp.Request {
	req.Meta.Principal = mcp.Principal{Issuer: issuer, Subject: subject}
	return req
}

// TestStateIsBoundToItsRequest: to what is asked for, not to how it is written.
func TestStateIsBoundToItsRequest_TG5(t *testing.T) {
	sealed := tool(`{"name":"a","arguments":{"n":9007199254740993,"o":{"x":[1,"é"],"y":1.0}},"_meta":{"progressToken":1}}`)
	prompt := tool(string(sealed.Params.Raw()))
	prompt.Method = mcp.MethodGetPrompt
	for _, tt := range []struct {
		name string
		req  *mcp.Request
		want error
	}{
		{"as it was", sealed, nil},
		{"as a retry", tool(`{"name":"a","arguments":{"n":9007199254740993,"o":{"x":[1,"é"],"y":1.0}},"inputResponses":{"q1":{}},"requestState":"s"}`), nil},
		{"in another order", tool(`{"arguments":{"o":{"y":1.0,"x":[1,"é"]},"n":9007199254740993},"name":"a"}`), nil},
		{"written in another way", tool(`{"n\u0061me":"\u0061", "arguments" : {"n" : 9007199254740993,"o":{"\u0078":[ 1,"\u00e9"],"y":1.0}}}`), nil},
		{"another tool", tool(`{"name":"b","arguments":{"n":9007199254740993,"o":{"x":[1,"é"],"y":1.0}}}`), park.ErrOtherRequest},
		{"a number that is the same float", tool(`{"name":"a","arguments":{"n":9007199254740992,"o":{"x":[1,"é"],"y":1.0}}}`), park.ErrOtherRequest},
		{"another literal", tool(`{"name":"a","arguments":{"n":9007199254740993,"o":{"x":[1,"é"],"y":1}}}`), park.ErrOtherRequest},
		{"a string for a number", tool(`{"name":"a","arguments":{"n":"9007199254740993","o":{"x":[1,"é"],"y":1.0}}}`), park.ErrOtherRequest},
		{"a member more", tool(`{"name":"a","arguments":{"n":9007199254740993,"o":{"x":[1,"é"],"y":1.0},"z":null}}`), park.ErrOtherRequest},
		{"a member in another object", tool(`{"name":"a","arguments":{"n":9007199254740993,"o":{"x":[1,"é"]},"y":1.0}}`), park.ErrOtherRequest},
		{"a resource of that name", tool(`{"uri":"a","arguments":{"n":9007199254740993,"o":{"x":[1,"é"],"y":1.0}}}`), park.ErrOtherRequest},
		{"an item less", tool(`{"name":"a","arguments":{"n":9007199254740993,"o":{"x":[1],"y":1.0}}}`), park.ErrOtherRequest},
		{"without arguments", tool(`{"name":"a"}`), park.ErrOtherRequest},
		{"another method", prompt, park.ErrOtherRequest},
		{"another principal", of(tool(string(sealed.Params.Raw())), "i", "s"), park.ErrForged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := park.NewSealer(nil)
			state, err := s.Seal(sealed, time.Minute, []byte("payload"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Open(tt.req, state)
			if !errors.Is(err, tt.want) || err == nil && string(got) != "payload" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestPrincipalsDoNotRunIntoEachOther(t *testing.T) {
	s := park.NewSealer([]byte("k"))
	state, err := s.Seal(of(tool(`{}`), `a`, `b"c`), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []mcp.Principal{{}, {Issuer: `a"b`, Subject: `c`}, {Issuer: `a`, Subject: `b`}, {Issuer: `ab"c`}} {
		if _, err := s.Open(of(tool(`{}`), p.Issuer, p.Subject), state); !errors.Is(err, park.ErrForged) {
			t.Errorf("%q: %v", p, err)
		}
	}
	if _, err := park.NewSealer([]byte("k")).Open(of(tool(`{}`), `a`, `b"c`), state); err != nil {
		t.Errorf("with the same secret: %v", err)
	}
	if _, err := park.NewSealer(nil).Open(of(tool(`{}`), `a`, `b"c`), state); !errors.Is(err, park.ErrForged) {
		t.Errorf("with another secret: %v", err)
	}
}

// TestEveryChangedByteIsFound: a state is of use only as it was given out.
func TestEveryChangedByteIsFound_TG5(t *testing.T) {
	s := park.NewSealer(nil)
	state, err := s.Seal(tool(`{"name":"a"}`), time.Minute, []byte("12"))
	if err != nil {
		t.Fatal(err)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	forged := []string{"", state + "A", state + "\n", state + "=", "\r" + state}
	for i := range state {
		forged = append(forged, state[:i], state[:i]+state[i+1:])
		for _, c := range alphabet {
			if byte(c) != state[i] {
				forged = append(forged, state[:i]+string(c)+state[i+1:])
			}
		}
	}
	for _, f := range forged {
		if _, err := s.Open(tool(`{"name":"a"}`), f); !errors.Is(err, park.ErrForged) {
			t.Fatalf("%q instead of %q: %v", f, state, err)
		}
	}
}

func TestStatesAreBounded_TK1(t *testing.T) {
	s := park.NewSealer(nil)
	const most = park.MaxState*3/4 - 68 // expiry, digest, nonce and tag are part of it
	state, err := s.Seal(tool(`{}`), time.Minute, make([]byte, most))
	if err != nil || len(state) != park.MaxState {
		t.Fatalf("at the limit: %d bytes, %v", len(state), err)
	}
	if got, err := s.Open(tool(`{}`), state); err != nil || len(got) != most {
		t.Errorf("at the limit: %d bytes, %v", len(got), err)
	}
	if _, err := s.Seal(tool(`{}`), time.Minute, make([]byte, most+1)); err == nil || !strings.Contains(err.Error(), "limit MaxState of 8192") {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := s.Open(tool(`{}`), strings.Repeat("A", 10<<20)); !errors.Is(err, park.ErrForged) {
		t.Errorf("one that is much longer: %v", err)
	}
}

func TestStatesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := park.NewSealer(nil)
		state, err := s.Seal(tool(`{}`), time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute - 1)
		if _, err := s.Open(tool(`{}`), state); err != nil {
			t.Error(err)
		}
		<-time.After(1)
		if _, err := s.Open(tool(`{}`), state); !errors.Is(err, park.ErrExpired) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Seal(tool(`{}`), 0, nil); err == nil {
			t.Error("a state without a life was made")
		}
	})
}

func TestOnceOpensStatesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := park.NewSealer(nil).Once(2)
		seal := func(life time.Duration) string {
			state, err := o.Seal(tool(`{}`), life, []byte("p"))
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		a, b, c := seal(time.Minute), seal(time.Hour), seal(time.Hour)
		for _, state := range []string{a, b} {
			if got, err := o.Open(tool(`{}`), state); err != nil || string(got) != "p" {
				t.Errorf("got %q, %v", got, err)
			}
			if _, err := o.Open(tool(`{}`), state); !errors.Is(err, park.ErrUsed) {
				t.Errorf("the second time: %v", err)
			}
		}
		var full *mcp.CallError
		if _, err := o.Open(tool(`{}`), c); !errors.As(err, &full) || full.Limit != "MaxUsed" {
			t.Errorf("at the limit: %v", err)
		}
		<-time.After(time.Minute)
		if _, err := o.Open(tool(`{}`), c); err != nil {
			t.Errorf("when one has expired: %v", err)
		}
		for state, want := range map[string]error{a: park.ErrExpired, b: park.ErrUsed, strings.ToLower(b): park.ErrForged} {
			if _, err := o.Open(tool(`{}`), state); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})
}

// TestEmptySecretIsNone: what nobody has set is not what everybody knows.
func TestEmptySecretIsNone(t *testing.T) {
	state, err := park.NewSealer([]byte{}).Seal(tool(`{}`), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := park.NewSealer([]byte{}).Open(tool(`{}`), state); !errors.Is(err, park.ErrForged) {
		t.Errorf("a sealer without a secret opens the state of another: %v", err)
	}
	state, err = park.NewSealer([]byte("secret")).Seal(tool(`{}`), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := park.NewSealer([]byte("secret")).Open(tool(`{}`), state); err != nil {
		t.Errorf("with one secret: %v", err)
	}
}

// TestUsedStatesTakeLittleMemory, however long they are.
func TestUsedStatesTakeLittleMemory(t *testing.T) {
	const n = 3000
	o := park.NewSealer(nil).Once(n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		state, err := o.Seal(tool(`{}`), time.Minute, make([]byte, 6000))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Open(tool(`{}`), state); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > n*1000 {
		t.Errorf("%d states take %d bytes", n, grown)
	}
	runtime.KeepAlive(o)
}

package client_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A mute is a legacy server over HTTP, as an [http.RoundTripper] in a bubble, which
// leaves server/discover without a reply.
type mute struct {
	mu     sync.Mutex
	got    []string // methods; guarded by mu, like what follows
	forgot bool     // the session
}

// RoundTrip implements [http.RoundTripper].
func (s *mute) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusAccepted, Header: make(http.Header), Request: r, Body: http.NoBody, ContentLength: -1}
	if r.Method != http.MethodPost {
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	}
	var m jsonrpc.Message
	if body, err := io.ReadAll(r.Body); err != nil || jsonrpc.Scan(body, &m) != nil {
		return nil, io.ErrUnexpectedEOF
	}
	method := string(m.Method)
	s.mu.Lock()
	s.got = append(s.got, method)
	forgot := s.forgot && method == mcp.MethodCallTool
	s.forgot = s.forgot && !forgot
	s.mu.Unlock()
	text := aResult
	switch {
	case method == mcp.MethodDiscover:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case forgot:
		resp.StatusCode = http.StatusNotFound
		return resp, nil
	case m.Kind != jsonrpc.Request:
		return resp, nil
	case method == mcp.MethodInitialize:
		resp.Header.Set("Mcp-Session-Id", "s")
		text = anInit
	}
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(strings.ReplaceAll(text, "ID", m.ID.String())))
	resp.Header.Set("Content-Type", "application/json")
	return resp, nil
}

// take returns what was asked for since the last time.
func (s *mute) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := strings.Join(s.got, " ")
	s.got = nil
	return got
}

// TestSilentServerIsWaitedForOnce: neither the next connection nor a client that was
// told asks again.
func TestSilentServerIsWaitedForOnce_B110(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &mute{}
		target := client.URL("http://h/mcp")
		target.Options.Transport = s
		began := time.Now()
		c, err := client.Connect(t.Context(), target, healsFast())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 6*time.Second || c.Verdict().Era != mcp.Legacy {
			t.Errorf("taken for %s after %v", c.Verdict().Era, took)
		}
		synctest.Wait()
		s.take()
		s.mu.Lock()
		s.forgot = true
		s.mu.Unlock()
		if err := call(t, c); err != nil {
			t.Errorf("after the session was lost: %v", err)
		}
		if got := s.take(); strings.Contains(got, mcp.MethodDiscover) || !strings.Contains(got, mcp.MethodInitialize) {
			t.Errorf("the next connection asked for %s", got)
		}
		prior := c.Verdict()
		told, err := client.Connect(t.Context(), target, &client.Options{Prior: &prior})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.take(); strings.Contains(got, mcp.MethodDiscover) {
			t.Errorf("a client that was told asked for %s", got)
		}
		for _, c := range []*client.Client{c, told} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

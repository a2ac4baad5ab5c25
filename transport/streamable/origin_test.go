package streamable_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestConfiguredHeaders(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		answer := onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m.Kind == jsonrpc.Request {
				writeResult(w, m, `{"tools":[]}`)
			}
		})
		peer := modernPeer(answer)
		if era == mcp.Legacy {
			peer = legacyPeer("2025-11-25", "mine", answer)
		}
		p := newPeer(t, peer)
		opts := knownEra(era)
		opts.Header = http.Header{
			"Authorization": {"Bearer abc"}, "x-a": {"1"}, "X-A": {"2"}, "X-Api-Key": {"k1", "k2"},
			// B085, D1.16: the protocol's own, in odd case.
			"accept": {"x"}, "Accept": {"y"}, "CONTENT-TYPE": {"text/plain"}, "Mcp-Session-ID": {"stolen"}, "mcp-protocol-version": {"1"},
			"MCP-Method": {"x"}, "mcp-NAME": {"x"}, "last-event-id": {"x"}, "accept-encoding": {"br"}, "Content-Length": {"1"},
			"transfer-encoding": {"chunked"}, "connection": {"close"}, "host": {"evil.example"},
		}
		c := dial(t, p.url, opts)
		if _, err := call(t, c, mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
		closeSoon(t, c)
		for _, s := range p.seen("") {
			for name, want := range map[string][]string{
				"Authorization": {"Bearer abc"}, "X-A": {"2", "1"}, "X-Api-Key": {"k1", "k2"},
				"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Accept-Encoding": {"gzip"}, "Last-Event-Id": nil, "Connection": nil,
			} {
				switch {
				case s.verb == "GET" && name == "Accept":
					want = []string{"text/event-stream"}
				case s.verb != "POST" && name == "Content-Type":
					want = nil
				}
				if got := s.header[name]; !slices.Equal(got, want) {
					t.Errorf("D1.16, B080: %s %s: %s is %q, want %q", s.verb, s.method, name, got, want)
				}
			}
			for name, values := range s.header {
				if strings.HasPrefix(name, "Mcp-") && (len(values) != 1 || slices.Contains([]string{"x", "1", "stolen"}, values[0])) {
					t.Errorf("D1.16: %s %s: %s is %q", s.verb, s.method, name, values)
				}
			}
		}
	}
}

func TestConfiguredHeadersThatAreNone(t *testing.T) {
	for _, header := range []http.Header{
		{"X-Key": {"secret-value\r\nX-Evil: 1"}}, {"X-Key": {"secret-value\n"}}, {"X-Key": {"secret-value\x00"}}, {"X Key": {"secret-value"}}, {"": {"secret-value"}}, {"X:Y": {"secret-value"}}, {"Ä": {"secret-value"}},
	} {
		_, err := streamable.Dial(t.Context(), "http://127.0.0.1:1/mcp", &streamable.DialOptions{Header: header})
		if err == nil || !strings.Contains(err.Error(), "header") || strings.Contains(err.Error(), "secret-value") {
			t.Errorf("B157: %q: %v", header, err)
		}
	}
}

// TestRedirects is the table of B088, B089 and D1.15. The second origin must never hear
// anything of a request.
func TestRedirects(t *testing.T) {
	second := newPeer(t, modernPeer(nil))
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, second.url, http.StatusTemporaryRedirect)
	}))
	defer secure.Close()
	port := strings.TrimPrefix(second.url, "http://127.0.0.1")
	for _, tt := range []struct {
		name     string
		status   int
		location string // self is the first origin
		ok       bool
		contains string
	}{
		{name: "B088 307 to a path", status: 307, location: "/moved", ok: true},
		{name: "B088 308 with an origin", status: 308, location: "self/moved?x=1", ok: true},
		{name: "B088 307 relative", status: 307, location: "moved", ok: true},
		{name: "B088 301", status: 301, location: "/moved", contains: "redirects a POST with status 301 to self/moved"},
		{name: "B088 302", status: 302, location: "/moved", contains: "redirects a POST with status 302"},
		{name: "B088 303", status: 303, location: "/moved", contains: "redirects a POST with status 303"},
		{name: "B088 a loop", status: 307, location: "/mcp", contains: "more than 10 times"},
		{name: "B089 307 to another port", status: 307, location: second.url, contains: "another origin, " + second.url},
		{name: "B089 308 to another port", status: 308, location: second.url + "?token=hidden-secret", contains: "another origin, " + second.url + ";"},
		{name: "B089 302 to another port", status: 302, location: second.url, contains: "another origin"},
		{name: "B089 another host", status: 307, location: "http://localhost" + port, contains: "another origin"},
		{name: "B089 another host with credentials in it", status: 307, location: "http://user:hidden-secret@localhost" + port, contains: "another origin, http://localhost"},
		{name: "B089 a machine's own data", status: 307, location: "http://169.254.169.254/latest/meta-data", contains: "another origin, http://169.254.169.254/"},
		{name: "B088 http to https", status: 301, location: secure.URL + "/mcp", contains: "use that address"},
		{name: "a long one", status: 307, location: "http://localhost/" + strings.Repeat("x", 100_000), contains: "another origin, http://localhost/xxx"},
		{name: "a secret where it is cut", status: 307, location: "http://localhost/" + strings.Repeat("x", 175) + "hidden-secret", contains: "another origin, http://localhost/xxx"},
		{name: "another scheme", status: 307, location: "file:///etc/passwd", contains: "another origin"},
		{name: "no location", status: 307, location: ""},
		{name: "another redirect", status: 300, location: "/moved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var self string
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if r.URL.Path == "/moved" {
					modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { writeResult(w, m, `{"tools":[]}`) })(w, r, m)
					return
				}
				if tt.location != "" {
					w.Header().Set("Location", strings.Replace(tt.location, "self", self, 1))
				}
				w.WriteHeader(tt.status)
			})
			self = strings.TrimSuffix(p.url, "/mcp")
			opts := knownEra(mcp.NoEra)
			opts.Header = http.Header{"Authorization": {"Bearer hidden-secret"}, "X-Api-Key": {"hidden-secret"}, "Cookie": {"c=hidden-secret"}}
			c, err := streamable.Dial(t.Context(), p.url, opts)
			if n := len(second.seen("")); n != 0 {
				t.Fatalf("B089: the second origin got %q", second.order())
			}
			if !tt.ok {
				if err == nil || !strings.Contains(err.Error(), strings.Replace(tt.contains, "self", self, 1)) || strings.Contains(err.Error(), "hidden") {
					t.Errorf("B088, D1.26: %v", err)
				}
				if n := len(err.Error()); n > 1000 {
					t.Errorf("an error of %d bytes", n)
				}
				if n := len(p.seen("")); n > 11 {
					t.Errorf("B088: %d requests", n)
				}
				if len(p.seen("initialize")) > 0 && tt.location != "" && tt.status != 300 {
					t.Errorf("B112: a redirect was taken for an answer: %q", p.order())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer closeSoon(t, c)
			if _, err := call(t, c, mcp.NoCaller{}); err != nil {
				t.Fatal(err)
			}
			// With method, body and headers.
			for _, s := range p.seen("POST") {
				if s.method == "" || s.header.Get("X-Api-Key") == "" || s.header.Get("Authorization") == "" || s.header.Get("Mcp-Method") != s.method {
					t.Errorf("B088: %s %s with %v", s.url, s.body, s.header)
				}
			}
		})
	}
	// B088: from https to http never.
	trusting := secure.Client().Transport.(*http.Transport)
	defer trusting.CloseIdleConnections()
	_, err := streamable.Dial(t.Context(), secure.URL, &streamable.DialOptions{Transport: trusting})
	if err == nil || !strings.Contains(err.Error(), "another origin") || len(second.seen("")) != 0 {
		t.Errorf("B088: %v", err)
	}
}

func TestRedirectsOfStreamsAndGoodbyes(t *testing.T) {
	second := newPeer(t, legacyPeer("2025-11-25", "", nil))
	for _, status := range []int{301, 302, 303, 307, 308} {
		p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method != "POST" {
				http.Redirect(w, r, second.url, status)
				return
			}
			legacyPeer("2025-11-25", "s", nil)(w, r, m)
		})
		c := dial(t, p.url, knownEra(mcp.Legacy))
		p.await(t, "GET", 1)
		if _, err := call(t, c, mcp.NoCaller{}); err != nil {
			t.Error(err)
		}
		closeSoon(t, c)
		if n := len(second.seen("")); n != 0 || len(p.seen("DELETE")) != 1 {
			t.Errorf("B089: %d: the second origin got %q", status, second.order())
		}
	}
}

// TestSecretsStaySecret has each kind of failure happen to a connection whose
// address and headers hold secrets, and a server that repeats them.
func TestSecretsStaySecret(t *testing.T) {
	const secret = "hidden-secret/1"
	var log journal
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		text := fmt.Sprintf("no: %s, %s, %s", r.URL, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
		http.Error(w, text, http.StatusInternalServerError)
	})
	url := p.url + "?exaApiKey=hidden-secret%2F1&short=x"
	opts := knownEra(mcp.NoEra)
	opts.Logger = log.logger()
	opts.Header = http.Header{"X-Api-Key": {secret}, "Authorization": {"Bearer " + secret}}
	var errs []error
	for _, address := range []string{url, strings.Replace(url, "http://", "http://user:hidden-secret@", 1), "http://127.0.0.1:1/mcp?exaApiKey=" + secret, "ftp://h/?k=" + secret, "http://h:x/?k=" + secret} {
		_, err := streamable.Dial(t.Context(), address, opts)
		errs = append(errs, err)
		_, err = streamable.CallOnce(t.Context(), address, toolRequest("t", "{}"), nil, opts)
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "hidden-secret") {
			t.Errorf("D1.26, D1.20: %v", err)
		}
	}
	if !strings.Contains(errs[0].Error(), "no: /mcp?exaApiKey=***&short=x, ***, ***") {
		t.Errorf("the excerpt is %v", errs[0])
	}
	if strings.Contains(log.String(), "hidden-secret") {
		t.Errorf("D1.26: the log is %s", log.String())
	}
	if status, ok := errors.AsType[*streamable.StatusError](errs[0]); !ok || status.Status != 500 {
		t.Errorf("%v", errs[0])
	}
}

// TestSecretsAreNotToldInPart has a server repeat secrets that are as long as tokens
// can be, whole or cut off.
func TestSecretsAreNotToldInPart(t *testing.T) {
	for _, size := range []int{100, 900, 1500, 3999, 4000, 4001, 10_000} {
		secret := strings.Repeat("secret/", size)[:size]
		opts := knownEra(mcp.NoEra)
		opts.Header = http.Header{"Authorization": {"Bearer " + secret}}
		for name, tt := range map[string]struct{ body, want string }{
			"alone":              {secret, "***"},
			"again and again":    {strings.Repeat(secret+",", 10), strings.Repeat("***,", 10)},
			"behind a text":      {strings.Repeat("x", 190) + secret + " is wrong", strings.Repeat("x", 190) + "*** is wro"},
			"across the end":     {strings.Repeat("x", 199) + secret, strings.Repeat("x", 199) + "*"},
			"cut off":            {"wrong: " + secret[:size-1], "wrong: ***"},
			"with its scheme":    {"Bearer " + secret + " is wrong", "*** is wrong"},
			"the scheme cut off": {"wrong: Bearer " + secret[:size/2], "wrong: ***"},
			"not at all":         {"wrong", "wrong"},
		} {
			p := newPeer(t, func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, tt.body)
			})
			_, err := streamable.CallOnce(t.Context(), p.url, toolRequest("t", "{}"), nil, opts)
			status, ok := errors.AsType[*streamable.StatusError](err)
			if !ok || status.Excerpt != tt.want {
				t.Errorf("a secret of %d bytes %s: the excerpt of %v", size, name, err)
			}
		}
	}
}

// A roundTripper makes HTTP requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSecretsInHeadsStaySecret has a server repeat a secret outside the body.
func TestSecretsInHeadsStaySecret(t *testing.T) {
	const secret = "hidden-secret"
	opts := knownEra(mcp.NoEra)
	opts.Header = http.Header{"Authorization": {"Bearer " + secret}}
	for _, code := range []int{200, 302, 401, 403, 500} {
		opts.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: code, Status: fmt.Sprint(code, " no ", secret, strings.Repeat(" no", 1<<20)), Request: r, Body: io.NopCloser(strings.NewReader("no")),
				Header: http.Header{
					"Content-Type":     {"application/" + secret},
					"Www-Authenticate": {`Bearer error_description="` + secret + `", resource_metadata="https://h/r"`, "Basic"},
				},
			}, nil
		})
		_, err := streamable.CallOnce(t.Context(), "http://h/mcp", toolRequest("t", "{}"), nil, opts)
		if text := fmt.Sprintf("%v %+v %s", err, err, jsonrpc.ToWire(err)); err == nil || strings.Contains(text, secret) || len(text) > 3000 {
			t.Errorf("%d: %.1000v", code, err)
		}
		want := []string{`Bearer error_description="***", resource_metadata="https://h/r"`, "Basic"}
		if auth, ok := errors.AsType[*streamable.AuthError](err); ok != (code == 401 || code == 403) || ok && !slices.Equal(auth.Challenges, want) {
			t.Errorf("%d: %.1000v", code, err)
		}
	}
}

// TestTransportsThatSayLittle has transports leave out what an http.Client does
// without.
func TestTransportsThatSayLittle(t *testing.T) {
	opts := knownEra(mcp.NoEra)
	for name, tt := range map[string]struct {
		resp *http.Response
		want string
	}{
		"no reply":       {nil, "no reply"},
		"no body":        {&http.Response{StatusCode: 403, Status: "403 Forbidden"}, "HTTP 403 Forbidden with an empty body"},
		"half a body":    {&http.Response{StatusCode: 200, Status: "200 OK", ContentLength: 10}, "the reply was cut off"},
		"a redirect":     {&http.Response{StatusCode: 307, Status: "307", Header: http.Header{"Location": {"http://other/"}}}, "another origin"},
		"no redirect":    {&http.Response{StatusCode: 304, Status: "304 Not Modified"}, "HTTP 304 Not Modified with an empty body"},
		"no header":      {&http.Response{StatusCode: 200, Status: "200 OK", ContentLength: -1, Body: io.NopCloser(strings.NewReader("x"))}, `unexpected content type ""`},
		"an empty reply": {new(http.Response), "HTTP 0"},
	} {
		opts.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return tt.resp, nil })
		if _, err := streamable.CallOnce(t.Context(), "http://h/mcp", toolRequest("t", "{}"), nil, opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	found := http.Header{"Location": {"/other"}}
	stream := "event: endpoint\ndata: http://elsewhere/message\n\n"
	opts.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"text/event-stream"}}
		if r.URL.Path == "/moved" {
			return &http.Response{StatusCode: 307, Header: found}, nil
		}
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(stream))}, nil
	})
	for _, address := range []string{"http://h/sse", "http://user:password@h/sse", "http://h/moved"} {
		if _, err := streamable.DialSSE(t.Context(), address, opts); err == nil || !strings.Contains(err.Error(), "elsewhere") {
			t.Errorf("an endpoint elsewhere: %v", err)
		}
	}
}

package streamable

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An origin is where a server is, and what is sent to it and nobody else.
type origin struct {
	url     string
	blank   *http.Request // to url, as net/http wants it
	header  http.Header   // as configured, without what belongs to the protocol
	secrets *secrets      // what must not be repeated in an error
}

func newOrigin(address string, configured http.Header) (origin, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return origin{}, fmt.Errorf("%q is no http or https URL", redacted(address))
	}
	header, err := ownHeader(configured)
	if err != nil {
		return origin{}, err
	}
	// net/http has its own ways with an address, such as with a port that is empty.
	req, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		return origin{}, fmt.Errorf("%q is no http or https URL", redacted(address))
	}
	return origin{url: address, blank: req, header: header, secrets: newSecrets(secretsOf(u, header))}, nil
}

// protocolHeaders belong to the transport, HTTP or the protocol. With an
// Idempotency-Key net/http would send a request again that the server may have
// taken.
var protocolHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
	"Idempotency-Key", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key",
	lastEventID, methodHeader, nameHeader, sessionHeader, versionHeader,
}

// ownHeader returns configured headers in canonical spelling, so that none can
// stand beside one of the protocol's, and without the protocol's own.
func ownHeader(configured http.Header) (http.Header, error) {
	header := make(http.Header, len(configured))
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		values := configured[name]
		if !isToken(name) {
			return nil, fmt.Errorf("header %q: not a header name", name)
		}
		for _, value := range values {
			if !isFieldValue(value) {
				// The value may be a secret.
				return nil, fmt.Errorf("header %s: its value holds a control character", name)
			}
		}
		if name = http.CanonicalHeaderKey(name); !slices.Contains(protocolHeaders, name) {
			header[name] = append(header[name], values...)
		}
	}
	return header, nil
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-!#$%&'*+.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether net/http lets s pass as a header's value.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// Redacted returns a URL without what may be secret in it: user, query and
// fragment.
func Redacted(address string) string { return redacted(address) }

// redacted returns an address without what may be a secret in it.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the given address"
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}

// unaddressed returns what is wrong without the address, which net/http puts
// into its errors, secrets included.
func unaddressed(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// A redirectError says that a redirect is not followed.
type redirectError struct{ reason string }

func (e *redirectError) Error() string { return e.reason }

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 10

// checkRedirect follows nothing that would change a method, lose a body, or
// carry either to another origin.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	target := redacted(req.URL.String())
	switch status := req.Response.StatusCode; {
	case len(via) > maxRedirects:
		return &redirectError{fmt.Sprintf("the server redirects more than %d times", maxRedirects)}
	case !sameOrigin(req.URL, first.URL):
		return &redirectError{fmt.Sprintf("the server redirects to another origin, %s; use that address if it is to be trusted", target)}
	case first.Method != http.MethodGet && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect:
		return &redirectError{fmt.Sprintf("the server redirects a %s with status %d to %s; use that address", first.Method, status, target)}
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portFor(a) == portFor(b)
}

func portFor(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// Limits of network connections.
const (
	maxIdleConns   = 64
	writeBuffer    = 64 << 10 // bytes; what is longer takes more than one write
	maxReplyHeader = 1 << 20
	idleConn       = 90 * time.Second
	// A connection that has been silent for so long is asked whether it still
	// is one: it may have gone while the machine slept.
	pingAfter = 30 * time.Second
)

// keepAlive has TCP find out within 45 s that the peer of a silent connection is
// gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: pingAfter / 2, Interval: pingAfter / 2, Count: 2}

func newTransport(connect time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                  discreetly(http.ProxyFromEnvironment),
		DialContext:            (&net.Dialer{Timeout: connect, KeepAliveConfig: keepAlive}).DialContext,
		TLSHandshakeTimeout:    connect,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleConn,
		MaxResponseHeaderBytes: maxReplyHeader,
		WriteBufferSize:        writeBuffer,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter / 2},
	}
}

var errNoProxy = errors.New("what the environment names as a proxy cannot be used")

// discreetly returns proxy with errors that do not repeat the address, which may hold a
// password, and say that nothing was sent.
func discreetly(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(req *http.Request) (*url.URL, error) {
		address, err := proxy(req)
		if err != nil {
			return nil, &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errNoProxy}
		}
		return address, nil
	}
}

package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// diagnoseURL says why a server at a URL was not connected to.
func diagnoseURL(t *target, err error) diagnosis {
	where := t.shown()
	for _, of := range []func(*target, error) diagnosis{ofNetwork, ofTLS, ofAnswer, ofStatus} {
		if d := of(t, err); d.said != "" {
			return d
		}
	}
	if late, ok := errors.AsType[*timeoutError](err); ok {
		return diagnosis{fmt.Sprintf("%s did not answer within %v", where, late.limit), "is the address right? --timeout gives the server longer"}
	}
	switch failed, _ := errors.AsType[*mcp.CallError](err); {
	case failed == nil:
		return diagnosis{}
	case strings.Contains(err.Error(), "malformed HTTP"):
		return diagnosis{"what answers at " + where + " does not speak HTTP", "is the port right?"}
	case failed.Kind == mcp.ConnectionLost:
		return diagnosis{where + " closed the connection without an answer", "is it a server of MCP over HTTP, and is the port right?"}
	case failed.Kind == mcp.BadReply && !strings.Contains(err.Error(), "redirects"):
		return diagnosis{"what " + where + " answers is not MCP", pathHint(t)}
	}
	return diagnosis{}
}

// ofNetwork is about what is between us and the server.
func ofNetwork(t *target, err error) diagnosis {
	fails := t.shown() + " cannot be reached: "
	name, isName := errors.AsType[*net.DNSError](err)
	switch {
	case isName && name.IsNotFound:
		return diagnosis{fails + "there is no host named " + quoted(name.Name), "is the name spelled right? some names are known in a certain network only"}
	case isName:
		return diagnosis{fails + "the name " + quoted(name.Name) + " could not be looked up", "is this machine connected to a network?"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return diagnosis{fails + "the connection was refused", "nothing listens at that address: is the server running?"}
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return diagnosis{fails + "there is no way to its network", "is this machine connected to that network?"}
	}
	return diagnosis{}
}

// ofTLS is about encryption that one side wants and the other has not, and certificates.
func ofTLS(t *target, err error) diagnosis {
	where, host := t.shown(), quoted(t.url.Hostname())
	_, isPlain := errors.AsType[tls.RecordHeaderError](err)
	_, isOther := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case isPlain, errors.Is(err, http.ErrSchemeMismatch):
		return diagnosis{where + " was tried with TLS, which the server does not speak", "did you mean " + withScheme(t, "http") + "? what is sent is not encrypted then"}
	case wantsTLS(t, err):
		return diagnosis{where + " was tried without TLS, which the server wants", "did you mean " + withScheme(t, "https") + "?"}
	case isUntrusted(err):
		return diagnosis{said: "the certificate of " + host + " is from somebody whom this machine does not trust"}
	case isOther:
		return diagnosis{"the certificate of the server is not for " + host, "is that the name under which the server is known?"}
	case isInvalid && invalid.Reason == x509.Expired:
		return diagnosis{"the certificate of " + host + " is out of date, or not yet valid", "is the clock of this machine right?"}
	case isInvalid:
		return diagnosis{said: "the certificate of " + host + " is not valid"}
	}
	return diagnosis{}
}

// tlsAlert is how an alert begins: what a server of TLS answers to a request without.
const tlsAlert = `\x15\x03`

// wantsTLS reports whether a server that we have sent plain HTTP to speaks TLS: it
// answers an alert, or as most web servers 400 with a text.
func wantsTLS(t *target, err error) bool {
	if t.url.Scheme != "http" {
		return false
	}
	text := err.Error()
	if e, ok := errors.AsType[*streamable.StatusError](err); ok && e.Status == http.StatusBadRequest {
		text := strings.ToLower(e.Excerpt)
		return strings.Contains(text, "http request") && strings.Contains(text, "https")
	}
	return strings.Contains(text, "malformed HTTP") && strings.Contains(text, tlsAlert)
}

// withScheme is the address of a target with another scheme.
func withScheme(t *target, scheme string) string {
	other := *t
	other.url = new(url.URL)
	*other.url = *t.url
	other.url.Scheme = scheme
	return other.String()
}

// ofAnswer is about a message that refuses us.
func ofAnswer(t *target, err error) diagnosis {
	d := refusal(t.shown(), err)
	if statusOf(err) == http.StatusNotFound {
		d.hint = pathHint(t)
	}
	return d
}

// ofStatus is about what a web server answers that is no message.
func ofStatus(t *target, err error) diagnosis {
	where := t.shown()
	if e, ok := errors.AsType[*streamable.AuthError](err); ok {
		return diagnosis{said: fmt.Sprintf("%s wants authorization (%s)", where, statusText(e.Status))}
	}
	status := statusOf(err)
	reply := " (" + statusText(status) + ")"
	switch {
	case status == 0:
		return diagnosis{}
	case status == http.StatusForbidden:
		return diagnosis{where + " refuses access" + reply, `if it wants a token, give one with -H "Authorization: Bearer TOKEN"`}
	case status == http.StatusNotFound, status == http.StatusGone:
		return diagnosis{"there is nothing at " + where + reply, pathHint(t)}
	case status == http.StatusMethodNotAllowed:
		return diagnosis{where + " takes no messages of MCP" + reply, pathHint(t)}
	case status == http.StatusTooManyRequests:
		return diagnosis{said: where + " has had too many requests" + reply}
	case status >= http.StatusInternalServerError && restOf(err) > 0:
		return diagnosis{said: where + " is in trouble" + reply} // and says for how long
	case status >= http.StatusInternalServerError:
		return diagnosis{where + " is in trouble" + reply, "try again later; if the server is yours, its log says more"}
	case isWebPage(err):
		return diagnosis{where + " is a web page, not an MCP server" + reply, pathHint(t)}
	}
	return diagnosis{"what " + where + " answers is not MCP" + reply, pathHint(t)}
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// pathHint is the way out where a web server is, and no endpoint.
func pathHint(t *target) string {
	switch path := t.url.Path; {
	case path == "" || path == "/":
		with := *t
		with.url = t.url.JoinPath("mcp")
		return "an address has a path, mostly /mcp: did you mean " + with.String() + "?"
	case strings.HasSuffix(path, "/mcp"):
		return "is the path right? the documentation of the server says what it is"
	}
	return "is the path right? that of an endpoint is often /mcp"
}

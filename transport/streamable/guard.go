package streamable

import (
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A guard keeps web pages of others away from a listener: by the Host header,
// which stops DNS rebinding, and by the Origin header, which stops cross-site
// requests (2026-07-28, streamable-http, Security & Endpoint).
type guard struct {
	hosts   []string // allowed besides loopback names, lower case, without ports
	origins []string // allowed besides the listener's own, lower case
}

func newGuard(hosts, origins []string) guard {
	g := guard{}
	for _, host := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(hostname(host)))
	}
	for _, origin := range origins {
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(origin, "/")))
	}
	return g
}

// MaxHeaders is how many lines of headers a request may have. How long they may
// be together is said to net/http.
const MaxHeaders = 200

// check returns why a request must not be served, nil if it may be. It sets the
// CORS headers of one that may.
func (g *guard) check(h http.Header, r *http.Request) *reject {
	h["Vary"] = varyOrigin
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	if lines > MaxHeaders {
		return invalid(http.StatusRequestHeaderFieldsTooLarge,
			"Request Header Fields Too Large: %d headers are over the limit MaxHeaders of %d", lines, MaxHeaders)
	}
	if !g.hostAllowed(r) {
		return forbidden("Host %q is not served here", r.Host)
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			return forbidden("cross-site requests are not served")
		}
		return nil
	}
	if len(origins) > 1 || !g.originAllowed(origins[0], r) {
		return forbidden("Origin %q is not allowed", strings.Join(origins, ", "))
	}
	h["Access-Control-Allow-Origin"] = origins
	h["Access-Control-Expose-Headers"] = exposedHeaders
	return nil
}

// hostAllowed checks the Host header where it matters: on connections to a
// loopback address, which only local programs are meant to reach, and wherever
// hosts are configured.
func (g *guard) hostAllowed(r *http.Request) bool {
	host := strings.ToLower(hostname(r.Host))
	if slices.Contains(g.hosts, host) {
		return true
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && !isLoopbackAddr(local) {
		return len(g.hosts) == 0
	}
	return host == "localhost" || isLoopback(host)
}

// originAllowed reports whether a page of an origin may use the listener: pages
// of the listener's own address, by any of its names, and those configured.
func (g *guard) originAllowed(origin string, r *http.Request) bool {
	origin = strings.ToLower(origin)
	return slices.Contains(g.origins, origin) || isOwn(origin, r) && g.isOurs(strings.ToLower(hostname(r.Host)))
}

// isOurs reports whether a host is certain to be ours. A name that is not configured
// may be that of a page's owner, who has made it lead here (DNS rebinding).
func (g *guard) isOurs(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || slices.Contains(g.hosts, host)
}

// foreign returns the origin of the page that makes a request which the guard has
// let through, empty if it is the listener's own or there is none: browsers name
// a page's own origin with some requests only.
func (g *guard) foreign(r *http.Request) string {
	origin := strings.ToLower(r.Header.Get("Origin"))
	if isOwn(origin, r) {
		return ""
	}
	return origin
}

// isOwn reports whether an origin, in lower case, is the listener's.
func isOwn(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	host := strings.ToLower(r.Host)
	if u.Host == host {
		return true
	}
	sameLoopback := isLoopbackName(u.Hostname()) && isLoopbackName(hostname(host))
	return sameLoopback && u.Port() == portOf(host)
}

// hostname returns a host without its port and brackets.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

func portOf(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return ""
	}
	return port
}

func isLoopbackName(host string) bool { return host == "localhost" || isLoopback(host) }

func isLoopbackAddr(addr net.Addr) bool {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return isLoopback(hostname(addr.String()))
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

var (
	varyOrigin     = []string{"Origin"}
	exposedHeaders = []string{"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"}
)

// requestHeaders are the headers that pages may send.
var requestHeaders = []string{
	"Accept", "Authorization", "Content-Type", "Last-Event-Id",
	"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id",
}

// preflight answers an OPTIONS request that the guard has let through.
func (o *output) preflight(methods string) {
	allowed := slices.Clone(requestHeaders)
	for name := range strings.SplitSeq(o.r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
		if strings.HasPrefix(name, mcp.HeaderPrefix) {
			allowed = append(allowed, name)
		}
	}
	h := o.w.Header()
	h.Set("Allow", methods)
	if o.r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Methods", methods)
		h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
		h.Set("Access-Control-Max-Age", "600")
	}
	o.empty(http.StatusNoContent)
}

package cli

import (
	"cmp"
	"net"
	"net/url"
	"strings"
)

// An address is where clients are served.
type address struct {
	stdio bool
	host  string // with the port
	path  string // of the endpoint; empty for the default
}

// defaultListen is served without --listen.
const defaultListen = "http://127.0.0.1:8421/mcp"

func parseAddress(text string) (address, error) {
	if text == "stdio" {
		return address{stdio: true}, nil
	}
	const forms = "it must be stdio or http://HOST:PORT, as in --listen " + defaultListen
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		if host, port, err := net.SplitHostPort(text); err == nil && port != "" {
			near := net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
			return address{}, usagef("did you mean http://"+near+"?", "--listen: %q is no URL", text)
		}
		if text != "" && isPort(text) {
			return address{}, usagef("did you mean http://127.0.0.1:"+text+"?", "--listen: %q is no URL", text)
		}
		return address{}, usagef(forms, "--listen: %q is no URL", text)
	}
	switch {
	case u.Scheme != "http":
		return address{}, usagef(forms, "--listen: cannot serve %q", u.Scheme)
	case u.Port() == "":
		return address{}, usagef("0 stands for any free port", "--listen: %q names no port", text)
	case !isPort(u.Port()):
		return address{}, usagef("", "--listen: %q has a port beyond 65535", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return address{}, usagef(forms, "--listen: %q holds more than host, port and path", u.Redacted())
	}
	return address{host: u.Host, path: u.Path}, nil
}

func parseAddresses(texts []string) ([]address, error) {
	if len(texts) == 0 {
		texts = []string{defaultListen}
	}
	all := make([]address, 0, len(texts))
	served := false
	for _, text := range texts {
		a, err := parseAddress(strings.TrimSpace(text))
		switch {
		case err != nil:
			return nil, err
		case a.stdio && served:
			return nil, usagef("", "--listen: stdio can be served once only")
		}
		served = served || a.stdio
		all = append(all, a)
	}
	return all, nil
}

// checkGuests refuses hosts and origins that no request can have.
func checkGuests(hosts, origins []string) error {
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, "/*@ ") {
			return usagef("as in --allow-host mcp.example.com", "--allow-host: %q is no host", host)
		}
	}
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return usagef("as in --allow-origin https://app.example.com", "--allow-origin: %q is no origin of a web page", origin)
		}
	}
	return nil
}

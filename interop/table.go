package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed profiles
var profiles embed.FS

// The forms: how a client reaches a server. The direct ones are the controls of
// the others.
const (
	directStdio = "stdio"
	directHTTP  = "http"
	directSSE   = "sse" // HTTP with SSE, of revision 2024-11-05
	formA       = "A"   // stdio server, client over HTTP
	formB       = "B"   // HTTP server, client over stdio
	formC       = "C"   // stdio server, client over stdio
	formD       = "D"   // HTTP server, client over HTTP
	formS       = "S"   // stdio server, client over HTTP with SSE
)

// A row is one client at one server in one form.
type row struct {
	server server
	form   string
	client client
}

func (r row) String() string { return r.server.name + "/" + r.form + "/" + r.client.name }

func (r row) direct() bool { return slices.Contains(directForms, r.form) }

// sides are the direct forms that a form through the bridge is made of: how the
// client reaches a server, and how the server is reached.
func (r row) sides() []string {
	switch r.form {
	case formA, formB:
		return []string{directStdio, directHTTP}
	case formC:
		return []string{directStdio}
	case formD:
		return []string{directHTTP}
	case formS:
		return []string{directSSE, directStdio}
	}
	return nil
}

// heals tells whether the client has to survive that its server is killed. A
// bridge would do that for it.
func (r row) heals() bool { return r.direct() && r.client.family == spliceFamily }

// hasSSE tells whether the client has a row over HTTP with SSE. Without a bridge
// those of others have one where they have one with it.
func (r row) hasSSE() bool {
	return r.client.sse && (r.form != directSSE || strings.Contains(r.server.forms, formS) || r.client.family == spliceFamily)
}

// exists tells whether the row is in the table, of those of its server's forms.
func (r row) exists() bool {
	switch {
	case r.server.not == r.client.family:
		return false
	case r.client.oneShot && r.server.slow && !r.serverOverHTTP():
		return false // it would start a server for each request
	case r.clientOverSSE():
		return r.hasSSE()
	}
	return true
}

// overHTTP is the command that serves the HTTP forms.
func (r row) overHTTP() func(tools) []string {
	if r.form == directSSE && r.server.sse != nil {
		return r.server.sse
	}
	return r.server.http
}

var directForms = []string{directStdio, directHTTP, directSSE}

func (r row) serverOverHTTP() bool {
	return r.form == directHTTP || r.form == directSSE || r.form == formB || r.form == formD
}

func (r row) clientOverHTTP() bool {
	return r.form == directHTTP || r.form == formA || r.form == formD || r.clientOverSSE()
}

func (r row) clientOverSSE() bool { return r.form == directSSE || r.form == formS }

// era is the era that the client has to end up in. Without a bridge an auto
// client gets what the server has; a bridge offers the modern one to all. HTTP
// with SSE is legacy.
func (r row) era() string {
	if r.client.era != "auto" {
		return r.client.era
	}
	switch {
	case r.clientOverSSE():
		return "legacy"
	case r.direct():
		return "any"
	}
	return "modern"
}

// rows is the whole table, controls first.
func rows() []row {
	var all []row
	for _, s := range servers {
		forms := []string{}
		if s.stdio != nil {
			forms = append(forms, directStdio)
		}
		if s.http != nil {
			forms = append(forms, directHTTP)
		}
		if s.ours || s.sse != nil {
			forms = append(forms, directSSE)
		}
		for _, form := range append(forms, strings.Split(s.forms, "")...) {
			for _, c := range clients {
				if r := (row{s, form, c}); r.exists() {
					all = append(all, r)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b row) int {
		switch {
		case a.direct() == b.direct():
			return 0
		case a.direct():
			return -1
		}
		return 1
	})
	return all
}

// profile is what the client of a row gets to know about the server, and the
// checks to run, in order.
func (r row) profile(tmp string) (text string, checks []string, err error) {
	b, err := profiles.ReadFile("profiles/" + r.server.profile + ".json")
	if err != nil {
		return "", nil, err
	}
	text = strings.NewReplacer("$TMP", tmp, "$SERVER", r.server.title).Replace(string(b))
	var p struct {
		Checks []string `json:"checks"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", nil, fmt.Errorf("profile %s: %w", r.server.profile, err)
	}
	return text, slices.DeleteFunc(p.Checks, func(check string) bool {
		return slices.Contains(r.server.without, check) || check == "heal" && !r.heals() ||
			r.client.only != nil && !slices.Contains(r.client.only, check)
	}), nil
}

package streamable

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// secrets are what errors and logs must not repeat of what is sent to an origin.
type secrets struct {
	mu    sync.Mutex
	texts []string // the longest first, so that none is left in part; guarded by mu, never changed
}

func newSecrets(texts []string) *secrets {
	s := new(secrets)
	s.add(texts...)
	return s
}

// shortSecret is how short a configured value may be and still be taken for a
// secret. Shorter ones stand in many a text by chance.
const shortSecret = 8

// add adds texts, unless they are short.
func (s *secrets) add(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.texts)
	for _, text := range texts {
		if len(text) >= shortSecret {
			all = append(all, text)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	s.texts = all
}

func (s *secrets) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts
}

// secretsOf returns what of an address and its headers may be secret.
func secretsOf(u *url.URL, header http.Header) []string {
	var found []string
	for _, values := range header {
		for _, value := range values {
			_, credentials, _ := strings.Cut(value, " ") // after the scheme
			found = append(found, value, credentials)
		}
	}
	for _, values := range u.Query() {
		for _, value := range values {
			found = append(found, value, url.QueryEscape(value))
		}
	}
	// Servers repeat it as it was sent, which need not be as we would write it.
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		found = append(found, value)
	}
	if name, password := u.User.Username(), ""; u.User != nil {
		password, _ = u.User.Password()
		found = append(found, name, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	return found
}

// Bounds of what an error may repeat.
const (
	excerptBytes = 200 // of a text of a reply
	reasonBytes  = 600 // of an error of net/http, which may hold such a text
)

// withoutSecrets returns values of a reply's header.
func (o *origin) withoutSecrets(values []string) []string {
	values = slices.Clone(values)
	for i := range values {
		for _, secret := range o.secrets.all() {
			values[i] = strings.ReplaceAll(values[i], secret, "***")
		}
	}
	return values
}

// excerpt returns the beginning of a text of a reply, without our secrets.
func (o *origin) excerpt(data []byte) string { return o.beginning(data, excerptBytes) }

// beginning returns at most limit bytes of a text, without our secrets.
func (o *origin) beginning(data []byte, limit int) string {
	known := o.secrets.all()
	var text []byte
	for len(data) > 0 && len(text) < limit {
		if n := secretAt(data, known); n > 0 {
			text, data = append(text, "***"...), data[n:]
			continue
		}
		text, data = append(text, data[0]), data[1:]
	}
	return strings.ToValidUTF8(string(text[:min(len(text), limit)]), "")
}

// secretAt returns the length of the secret that data begins with, or of its beginning
// if the rest of it is cut off; 0 if there is none.
func secretAt(data []byte, known []string) int {
	for _, secret := range known {
		n := min(len(secret), len(data))
		if n >= shortSecret && string(data[:n]) == secret[:n] {
			return n
		}
	}
	return 0
}

// A briefError is an error that repeats what the server sent, or too much of it.
type briefError struct {
	text string
	err  error
}

// Error returns what may be told.
func (e *briefError) Error() string { return e.text }

// Unwrap returns the whole error.
func (e *briefError) Unwrap() error { return e.err }

// brief returns an error of net/http as one that may be told. Where a reply is none,
// net/http repeats it.
func (o *origin) brief(err error) error {
	whole := err.Error()
	if text := o.beginning([]byte(whole), reasonBytes); text != whole {
		return &briefError{text, err}
	}
	return err
}

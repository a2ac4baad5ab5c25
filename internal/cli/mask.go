package cli

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// mask stands in for a secret.
const mask = "[masked]"

// isSecret reports whether a member, header or parameter of this name is likely
// to hold a secret. Progress tokens do not.
func isSecret(name string) bool {
	name = strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
	for _, part := range []string{
		"authorization", "secret", "password", "passwd", "passphrase", "apikey", "privatekey", "credential", "cookie",
	} {
		if strings.Contains(name, part) {
			return true
		}
	}
	switch name {
	case "requeststate", "sessionid", "taskid", "taskids":
		return true
	}
	return strings.HasSuffix(name, "token") && name != "progresstoken"
}

// appendMasked appends a message with the values of secret members masked, in
// one line. What is no JSON is appended as a string, masked as well as can be.
func appendMasked(dst, message []byte) []byte {
	start := len(dst)
	buf := bytes.NewBuffer(dst)
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	dec := jsontext.NewDecoder(bytes.NewReader(message), lenient...)
	enc := jsontext.NewEncoder(buf, append(lenient, jsontext.PreserveRawStrings(true))...)
	if err := copyMasked(enc, dec); err != nil {
		return appendText(buf.Bytes()[:start], message)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// copyMasked copies one value.
func copyMasked(enc *jsontext.Encoder, dec *jsontext.Decoder) error {
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		depth := dec.StackDepth()
		kind, n := dec.StackIndex(depth)
		isName := token.Kind() == '"' && kind == '{' && n%2 == 1
		secret := isName && isSecret(token.String())
		if err := enc.WriteToken(token); err != nil {
			return err
		}
		if secret {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			if err := enc.WriteToken(jsontext.String(mask)); err != nil {
				return err
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// secretText finds what looks like a secret in a text that has no structure:
// a telling name, then a value.
var secretText = regexp.MustCompile(`(?i)((?:authorization|secret|password|passwd|token|api[_-]?key|requeststate)[\w-]*["']?\s*[:=]\s*)` +
	`("[^"]*"?|'[^']*'?|(?:bearer\s+|basic\s+)?[^\s,;&]+)`)

// maxText is how much is kept of what is no message.
const maxText = 1000

func appendText(dst, text []byte) []byte {
	if len(text) > maxText {
		text = text[:maxText]
	}
	text = secretText.ReplaceAll(text, []byte("${1}"+mask))
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(text), "\ufffd"))
	if err != nil { // not of valid UTF-8
		return append(dst, `""`...)
	}
	return append(dst, quoted...)
}

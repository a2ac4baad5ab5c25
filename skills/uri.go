package skills

import (
	"net/url"
	"strings"
	"unicode"
)

// skillFile is the name of the file that a skill begins with.
const skillFile = "SKILL.md"

// maxName is how long the name of a skill may be, in bytes (Agent Skills, name field).
const maxName = 64

// rootOf returns the URI of the folder of a skill, whose own URI is that of its
// SKILL.md. No scheme is better than others.
func rootOf(uri string) (string, bool) {
	root, ok := strings.CutSuffix(uri, "/"+skillFile)
	if !ok {
		return "", false
	}
	scheme, path, ok := strings.Cut(root, "://")
	return root, ok && scheme != "" && isPath(path)
}

// isWithin reports whether a URI is that of something below a skill's folder.
func isWithin(root, uri string) bool {
	path, ok := strings.CutPrefix(uri, root+"/")
	return ok && isPath(path)
}

// isPath reports whether a path in a URI leads nowhere but down. Hosts may make a path
// on disk of it, so that what is escaped counts, too.
func isPath(path string) bool {
	plain, err := url.PathUnescape(path)
	if err != nil || strings.ContainsFunc(plain, unicode.IsControl) {
		return false
	}
	for segment := range strings.SplitSeq(strings.ReplaceAll(plain, `\`, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// isName reports whether a skill may be called that (Agent Skills, name field).
func isName(name string) bool {
	if name == "" || len(name) > maxName || strings.Contains(name, "--") ||
		strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// isDigest reports whether a text has the form of a digest.
func isDigest(text string) bool {
	hex, ok := strings.CutPrefix(text, digestPrefix)
	return ok && len(hex) == 64 && !strings.ContainsFunc(hex, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

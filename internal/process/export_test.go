package process

import "strings"

// What tests of the outside need to see.

var (
	BuildEnv  = buildEnv
	BatchLine = batchLine
	IsBatch   = isBatch
	Clean     = clean
	LastLines = lastLines
)

// FindWindows resolves a name as on Windows, with the given files in place.
func FindWindows(name, dir, path, pathExt string, files map[string]bool) (string, error) {
	plain := strings.NewReplacer(`\.\`, `\`, `/`, `\`)
	w := windowsLookup{path: path, pathExt: pathExt, exists: func(f string) bool {
		return files[plain.Replace(f)]
	}}
	return w.find(name, dir)
}

// Tail writes chunks to a ring of the given limit and returns what it holds.
func Tail(limit int, chunks ...string) string {
	r := ring{limit: limit}
	for _, c := range chunks {
		r.write([]byte(c))
	}
	return string(r.bytes())
}

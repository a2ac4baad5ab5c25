package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

func addOutFlag(cmd *cobra.Command, out *string) {
	cmd.Flags().StringVarP(out, "out", "o", "", "save binary content to `FILE`, or under names of its own into a\ndirectory (which ends in /, or exists); - stands for stdout")
}

// checkOut refuses to save what is printed as it came, to write bytes to a
// terminal, and a file for which there is no directory: once the server has been
// called it is too late to say so.
func (a *app) checkOut(out string) error {
	switch {
	case out != "" && a.asJSON:
		return usagef("", "--out and --json do not go together")
	case out == "-" && a.columns > 0:
		return usagef("write it to a file, or into a pipe", "--out: stdout is a terminal")
	case out == "" || out == "-" || isDir(out):
		return nil
	}
	if _, err := os.Stat(filepath.Dir(out)); err != nil {
		return usagef("", "--out: %w", err)
	}
	return nil
}

// A saver writes what a server gave into files.
type saver struct {
	app   *app
	out   string // what --out says
	base  string // of the names in a directory
	saved int
}

// save saves bytes, and says where.
func (s *saver) save(mimeType string, data []byte, uri string) error {
	s.saved++
	if s.out == "-" {
		_, err := s.app.Out.Write(data)
		return err
	}
	name, err := s.write(mimeType, data, uri)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	s.app.notice("saved %s (%s)", name, size(len(data)))
	return nil
}

// sayIfNone tells people that there is no file, though they wanted one.
func (s *saver) sayIfNone() {
	if s.out != "" && s.out != "-" && s.saved == 0 {
		s.app.notice("there is no binary content; nothing was saved to %s", s.out)
	}
}

func (s *saver) write(mimeType string, data []byte, uri string) (string, error) {
	if !isDir(s.out) {
		name := numbered(s.out, s.saved)
		return name, os.WriteFile(name, data, 0o666)
	}
	if err := os.MkdirAll(s.out, 0o777); err != nil {
		return "", err
	}
	own := s.ownName(mimeType, uri)
	for n := 1; ; n++ {
		name := filepath.Join(s.out, numbered(own, n))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) && n < maxSameNames {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return name, errors.Join(err, f.Close())
	}
}

// maxSameNames is how many files of one name a directory gets.
const maxSameNames = 10_000

// isDir reports whether files are saved in out, and not as out.
func isDir(out string) bool {
	if strings.HasSuffix(out, "/") || strings.HasSuffix(out, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(out)
	return err == nil && info.IsDir()
}

// ownName is a name for a file in a directory. A server cannot make it leave the
// directory or hide there.
func (s *saver) ownName(mimeType, uri string) string {
	name := s.base
	if uri != "" {
		uri, _, _ = strings.Cut(uri, "?")
		name = path.Base(strings.TrimRight(uri, "/"))
	}
	name = strings.Trim(strings.Map(inFileName, name), ".- ")
	if runes := []rune(name); len(runes) > maxFileName {
		name = string(runes[:maxFileName])
	}
	if name == "" {
		name = "content"
	}
	if filepath.Ext(name) == "" {
		name += extension(mimeType)
	}
	return name
}

// maxFileName is how many characters of a server's name a file gets.
const maxFileName = 100

func inFileName(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._- ", r) {
		return r
	}
	return '-'
}

// extensions are those of the types that one meets, since systems know different
// ones.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/flac": ".flac",
	"application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/json": ".json",
	"text/plain": ".txt", "text/html": ".html", "text/markdown": ".md", "text/csv": ".csv",
}

func extension(mimeType string) string {
	kind, _, err := mime.ParseMediaType(mimeType)
	if err != nil {
		return ".bin"
	}
	if ext, ok := extensions[kind]; ok {
		return ext
	}
	return ".bin"
}

// numbered puts a number into a file's name, from the second one on.
func numbered(name string, n int) string {
	if n < 2 {
		return name
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}

package streamable

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// checkContentType refuses what a web page could send without being asked for
// permission first, and encodings that are not JSON's.
func checkContentType(r *http.Request) *reject {
	unsupported := func(format string, args ...any) *reject {
		return invalid(http.StatusUnsupportedMediaType, "Unsupported Media Type: "+format, args...)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return unsupported("Content-Encoding %q", encoding)
	}
	values := r.Header["Content-Type"]
	if len(values) > 1 {
		return unsupported("Content-Type is there %d times", len(values))
	}
	value := r.Header.Get("Content-Type")
	if value == "application/json" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(value)
	if err != nil || kind != "application/json" {
		return unsupported("Content-Type must be application/json, not %q", value)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return unsupported("charset must be utf-8, not %q", charset)
	}
	return nil
}

// accepts is which kinds of replies a client takes.
type accepts struct {
	json, stream bool
}

const usualAccept = "application/json, text/event-stream"

// readAccept reads the Accept header; an absent one accepts everything (RFC
// 9110, section 12.5.1).
func readAccept(header http.Header) accepts {
	values := header["Accept"]
	if len(values) == 0 || len(values) == 1 && values[0] == usualAccept {
		return accepts{json: true, stream: true}
	}
	return accepts{
		json:   quality(values, "application", "json") > 0,
		stream: quality(values, "text", "event-stream") > 0,
	}
}

// quality returns how much a media type is wanted: by the most specific range
// that covers it.
func quality(values []string, kind, subtype string) float64 {
	best, specificity := 0.0, -1
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			mediaRange, params, _ := strings.Cut(part, ";")
			k, s, _ := strings.Cut(strings.ToLower(strings.TrimSpace(mediaRange)), "/")
			level := -1
			switch {
			case k == kind && s == subtype:
				level = 2
			case k == kind && s == "*":
				level = 1
			case k == "*" && s == "*":
				level = 0
			}
			if level > specificity {
				specificity, best = level, qvalue(params)
			}
		}
	}
	return best
}

func qvalue(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			if q, err := strconv.ParseFloat(value, 64); err == nil {
				return q
			}
		}
	}
	return 1
}

// readBody reads a body of at most opts.MaxBody bytes, which then belongs to the
// caller.
func (o *output) readBody() ([]byte, *reject) {
	limit, size := o.opts.MaxBody, o.r.ContentLength
	if size > limit {
		return nil, tooLarge(strconv.FormatInt(size, 10), limit)
	}
	body, err := readAll(o.r.Body, size, limit, believed)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, tooLarge("more than "+strconv.FormatInt(limit, 10), limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, invalid(http.StatusRequestTimeout, "Request Timeout: the body was not there within the limit BodyTimeout of %v", o.opts.BodyTimeout)
	case err != nil:
		return nil, badRequest(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeParseError, "Parse error: the body ended early"))
	}
	if o.unread {
		o.unread = false
		o.readBy(0)
	}
	return body, nil
}

func tooLarge(seen string, limit int64) *reject {
	return invalid(http.StatusRequestEntityTooLarge, "Request body too large: %s bytes are over the limit MaxBody of %d", seen, limit)
}

var errTooLarge = errors.New("too large")

// believed is how many bytes of memory a client gets for announcing a body of
// that size. For more it must send these: what it has sent is multiplied by growth.
const (
	believed = 64 << 10
	growth   = 16
)

// Bounds of the memory of bodies that is used again: less is not worth it, and
// more is not kept.
const (
	minRecycled = 16 << 10
	maxRecycled = 2 << 20
)

// bodies holds memory of bodies that have been served.
var bodies sync.Pool

// recycled returns a body of the given size in memory that was given back, nil
// if there is none.
func recycled(size int64) []byte {
	if size < minRecycled || size > maxRecycled {
		return nil
	}
	b, ok := bodies.Get().(*[]byte)
	if !ok || int64(cap(*b)) < size {
		return nil
	}
	return (*b)[:size]
}

// newBody returns memory for a body of the given size.
func newBody(size int64) []byte {
	if body := recycled(size); body != nil {
		return body
	}
	return freshBody(size)
}

// freshBody returns memory that is as large as it can be at no cost, so that others
// can use it again.
func freshBody(size int64) []byte { return slices.Grow([]byte(nil), int(size))[:size] }

// recycle gives back the memory of a body that nothing refers to any more.
func recycle(body []byte) {
	if cap(body) >= minRecycled && cap(body) <= maxRecycled {
		bodies.Put(&body)
	}
}

// readAll reads to the end. A size that is told, and not negative, saves growing.
func readAll(r io.Reader, size, limit, believed int64) ([]byte, error) {
	if size < 0 {
		var buf bytes.Buffer
		n, err := buf.ReadFrom(io.LimitReader(r, max(limit+1, limit))) // the largest limit has no next
		if n > limit {
			return nil, errTooLarge
		}
		return buf.Bytes(), err
	}
	body := recycled(size)
	if body == nil {
		body = freshBody(min(size, believed))
	}
	n := 0
	for {
		if _, err := io.ReadFull(r, body[n:]); err != nil || int64(len(body)) == size {
			return body, err
		}
		n = len(body)
		grown := min(size, growth*int64(n))
		body = append(make([]byte, 0, grown), body...)[:grown]
	}
}

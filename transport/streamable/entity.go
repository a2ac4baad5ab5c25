package streamable

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// checkContentType refuses what a web page could send without being asked for
// permission first, and encodings that are not JSON's.
func checkContentType(r *http.Request) *reject {
	unsupported := func(format string, args ...any) *reject {
		return &reject{status: http.StatusUnsupportedMediaType, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Unsupported Media Type: "+format, args...)}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return unsupported("Content-Encoding %q", encoding)
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

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

// readBody reads a body of at most limit bytes, which then belongs to the
// caller.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *reject) {
	tooLarge := func(seen string) *reject {
		return &reject{status: http.StatusRequestEntityTooLarge, close: true, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Request body too large: %s bytes are over the limit MaxBody of %d", seen, limit)}
	}
	if r.ContentLength > limit {
		return nil, tooLarge(strconv.FormatInt(r.ContentLength, 10))
	}
	rc := http.NewResponseController(w)
	// A server without deadlines of its own is not made slower by ours.
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := readAll(r.Body, r.ContentLength, limit)
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, tooLarge("more than " + strconv.FormatInt(limit, 10))
	case err != nil:
		return nil, &reject{status: http.StatusBadRequest, close: true, err: jsonrpc.Errorf(jsonrpc.CodeParseError, "Parse error: the body ended early")}
	}
	return body, nil
}

var errTooLarge = errors.New("too large")

// readAll reads to the end, in one allocation if the size is told.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	if size >= 0 {
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if n > limit {
		return nil, errTooLarge
	}
	return buf.Bytes(), err
}

package cli

import (
	"io"
	"net/http"
	"strings"
)

// AppendMasked is appendMasked, and CodeOf codeOf.
var (
	AppendMasked = appendMasked
	CodeOf       = codeOf
)

// GuideRequest returns the request that the guide to the demo tells people to
// make.
func GuideRequest(url string) (*http.Request, error) {
	call := newExampleCall()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	for _, line := range call.headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	return req, nil
}

// Guide is guide.
var Guide = guide

// OpenTrace opens a trace that writes to w, and returns its tap and its Close.
func OpenTrace(w io.Writer) (tap func(outgoing bool, message []byte), closeTrace func() error, err error) {
	t, err := openTrace("-", w)
	if err != nil {
		return nil, nil, err
	}
	return t.tap("dial"), t.Close, nil
}

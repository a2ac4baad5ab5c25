package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A recorder writes what passes a tap, line by line.
type recorder struct {
	// Set at construction.
	start time.Time

	// Guarded by mu.
	mu   sync.Mutex
	file *os.File
}

func newRecorder(path string) (*recorder, error) {
	file, err := os.Create(path)
	return &recorder{start: time.Now(), file: file}, err
}

func (r *recorder) note(mark, text string) {
	const longest = 2000
	if len(text) > longest {
		text = fmt.Sprintf("%s… (%d bytes)", text[:longest], len(text))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.file, "%8.3f %s %s\n", time.Since(r.start).Seconds(), mark, strings.TrimRight(text, "\r\n"))
}

// lines gives a writer that records each line written to it.
func (r *recorder) lines(mark string) io.Writer { return &lineWriter{recorder: r, mark: mark} }

type lineWriter struct {
	recorder *recorder
	mark     string
	rest     []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		if line := bytes.TrimSpace(w.rest[:i]); len(line) > 0 {
			w.recorder.note(w.mark, string(line))
		}
		w.rest = w.rest[i+1:]
	}
}

// tapMain runs a command and records its stdin (>) and stdout (<).
func tapMain(path string, command []string) error {
	r, err := newRecorder(path)
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout = io.MultiWriter(r.lines("<"), os.Stdout)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.MultiWriter(r.lines(">"), stdin), os.Stdin)
		r.note("-", "stdin closed")
		stdin.Close()
	}()
	err = cmd.Wait()
	r.note("-", fmt.Sprintf("ended: %v", cmd.ProcessState))
	return err
}

// tapHTTP starts a proxy to target on a free loopback port that records
// requests (>) and responses (<) with the headers that MCP looks at. It runs
// until the process ends.
func tapHTTP(target, path string) (string, error) {
	r, err := newRecorder(path)
	if err != nil {
		return "", err
	}
	to, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = to.Scheme, to.Host, to.Host
		},
		ModifyResponse: func(res *http.Response) error {
			r.note("<", fmt.Sprintf("%s %s %s", res.Request.Method, res.Status, mcpHeaders(res.Header)))
			res.Body = &teeBody{ReadCloser: res.Body, to: r.lines("<")}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, req *http.Request, err error) {
			r.note("-", fmt.Sprintf("%s: %v", req.Method, err))
			panic(http.ErrAbortHandler) // as if there were no proxy
		},
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(body))
			r.note(">", fmt.Sprintf("%s %s %s %s", req.Method, req.URL.Path, mcpHeaders(req.Header), body))
			proxy.ServeHTTP(w, req)
		}))
	}()
	return "http://" + l.Addr().String() + to.Path, nil
}

func mcpHeaders(h http.Header) string {
	var b strings.Builder
	for _, name := range []string{
		"Content-Type", "Accept", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-Id",
	} {
		if value := h.Get(name); value != "" {
			fmt.Fprintf(&b, "[%s: %s]", name, value)
		}
	}
	return b.String()
}

// teeBody records a body that ends without a line break too.
type teeBody struct {
	io.ReadCloser
	to io.Writer
}

func (t *teeBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	_, _ = t.to.Write(p[:n])
	if err != nil {
		_, _ = t.to.Write([]byte("\n"))
	}
	return n, err
}

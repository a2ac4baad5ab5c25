package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// forms puts a server's questions to the user, one at a time.
type forms struct {
	app   *app
	from  string // the server, as people know it
	lines lines
	ask   bool  // somebody is there
	style style // of stderr

	asking sync.Mutex // held while a question is open
}

func newForms(a *app, from string) *forms {
	f := &forms{app: a, from: clean(from), lines: lines{in: a.In}}
	_, reads := terminal(a.In)
	f.ask = reads && a.console.terminal()
	f.style = newStyle(f.ask, os.Getenv)
	return f
}

// answer implements the client's option Elicit.
func (f *forms) answer(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	if !f.ask {
		f.app.notice("%s asks %q, which is declined: there is no terminal to ask at", f.from, shorten(clean(p.Message), maxText))
		return &mcp.ElicitResult{Action: mcp.Decline}, nil
	}
	f.app.console.hold(true)
	defer f.app.console.hold(false)
	f.printf("\n%s%s\n", f.style.bold(f.from+" asks: "), harmlessText(p.Message))
	action, content, err := f.put(ctx, p)
	switch {
	case errors.Is(err, io.EOF): // Ctrl-D
		f.printf("\nThe question was left without an answer.\n")
		return &mcp.ElicitResult{Action: mcp.Cancel}, nil
	case err != nil:
		f.printf("\n") // the line with the prompt is not ended
		return nil, err
	}
	return &mcp.ElicitResult{Action: action, Content: content}, nil
}

// maxFields is how many fields a form may have: nobody fills in more at a terminal.
const maxFields = 200

// put puts one question.
func (f *forms) put(ctx context.Context, p *mcp.ElicitParams) (mcp.ElicitAction, mcp.JSON, error) {
	if p.Mode == mcp.ElicitURL {
		action, err := f.page(ctx, p.URL)
		return action, nil, err
	}
	fields := newFields(newSchema(p.RequestedSchema))
	if len(fields) > maxFields {
		f.printf("It asks for %d things, and the limit MaxFields is %d. It is declined.\n", len(fields), maxFields)
		return mcp.Decline, nil, nil
	}
	if len(fields) > 0 {
		f.printf("%s\n", f.style.dim("Ctrl-D leaves the question, and nothing is sent before you say so."))
	}
	answers := make([][]byte, len(fields))
	for {
		for i := range fields {
			var err error
			if answers[i], err = f.field(ctx, &fields[i], answers[i]); err != nil {
				return "", nil, err
			}
		}
		choice, err := f.choose(ctx, "Send this to "+f.from+"? [Y]es, [n]o, [e]dit", "yes", "no", "edit")
		switch {
		case err != nil:
			return "", nil, err
		case choice == "no":
			return mcp.Decline, nil, nil
		case choice == "yes":
			return mcp.Accept, content(fields, answers), nil
		}
	}
}

// content is the form filled in.
func content(fields []field, answers [][]byte) mcp.JSON {
	var edits []jsonrpc.Edit
	for i, raw := range answers {
		if raw != nil {
			edits = append(edits, jsonrpc.Edit{Name: fields[i].name, Value: raw})
		}
	}
	empty := jsonrpc.Trusted([]byte("{}"))
	filled := jsonrpc.Edited(&empty, edits...)
	return filled.Raw()
}

// field has the user fill in a field, again until the answer is one. Before is
// what it was filled in with before, nil for nothing.
func (f *forms) field(ctx context.Context, field *field, before []byte) ([]byte, error) {
	f.printf("\n%s\n", field.head(f.style))
	preset := before
	if preset == nil {
		preset = field.preset
	}
	prompt := "> "
	if preset != nil {
		prompt = "[" + harmlessText(field.show(preset)) + "] > "
	}
	for {
		f.printf("%s", prompt)
		line, err := f.lines.next(ctx)
		if err != nil {
			return nil, err
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "" && preset != nil:
			return preset, nil
		case line == "" && !field.required:
			return nil, nil
		case line == "":
			f.printf("  an answer is needed\n")
			continue
		}
		raw, err := field.parse(line)
		if err == nil {
			return raw, nil
		}
		f.printf("  %v\n", err)
	}
}

// page shows the address of a page. Nothing is opened: what a server names can be
// anything.
func (f *forms) page(ctx context.Context, address string) (mcp.ElicitAction, error) {
	f.printf("\nIt wants you to visit this page, which was not opened:\n\n  %s\n\n", clean(address))
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		f.printf("This is no address of a web page. It is declined.\n")
		return mcp.Decline, nil
	}
	f.printf("Look whether you trust %s. ", f.style.bold(clean(u.Host)))
	choice, err := f.choose(ctx, "Have you done what it asks there? [y]es, [N]o", "no", "yes")
	if err != nil || choice == "no" {
		return mcp.Decline, err
	}
	return mcp.Accept, nil
}

// choose has the user choose one of several words, of which the first is taken
// for an empty line.
func (f *forms) choose(ctx context.Context, question string, words ...string) (string, error) {
	f.printf("\n")
	for {
		f.printf("%s > ", question)
		line, err := f.lines.next(ctx)
		if err != nil {
			return "", err
		}
		line = strings.ToLower(strings.TrimSpace(line))
		for _, word := range words {
			if strings.HasPrefix(word, line) {
				return word, nil
			}
		}
	}
}

// printf writes to the terminal. Whom it does not reach does not answer either.
func (f *forms) printf(format string, args ...any) { _, _ = fmt.Fprintf(f.app.Err, format, args...) }

// lines reads the lines of a terminal. Waiting for one can be given up, which
// reading it cannot: the goroutine that reads ends with the program.
type lines struct {
	in   io.Reader
	once sync.Once
	read chan string // closed at the end
}

// maxAnswer is how long a line of an answer may be.
const maxAnswer = 1 << 20

// next returns the next line, io.EOF after the last one.
func (l *lines) next(ctx context.Context) (string, error) {
	l.once.Do(func() {
		l.read = make(chan string)
		go func() {
			defer close(l.read)
			scanner := bufio.NewScanner(l.in)
			scanner.Buffer(nil, maxAnswer)
			for scanner.Scan() {
				l.read <- scanner.Text()
			}
		}()
	})
	select {
	case line, ok := <-l.read:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

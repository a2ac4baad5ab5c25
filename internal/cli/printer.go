package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/go-json-experiment/json/jsontext"
)

// A printer prints content for people: text as it is, except that it does nothing
// to a terminal, and binary content to files.
type printer struct {
	app   *app
	w     io.Writer
	safe  bool // w is a terminal
	saver *saver
}

func (a *app) newPrinter(out, base string) *printer {
	return &printer{app: a, w: a.Out, safe: a.columns > 0, saver: &saver{app: a, out: out, base: base}}
}

func (p *printer) toStderr() { p.w, p.safe = p.app.Err, p.app.console.terminal() }

// toolResult prints a tool's result: its content, or its structured content if
// there is no text.
func (p *printer) toolResult(r *mcp.CallToolResult) error {
	texts := 0
	for _, block := range r.Content {
		if _, ok := block.(*mcp.Text); ok {
			texts++
		}
		if err := p.content(block); err != nil {
			return err
		}
	}
	if !r.Failed() {
		p.saver.sayIfNone()
	}
	if texts > 0 || r.StructuredContent == nil {
		return nil
	}
	return p.json(r.StructuredContent)
}

func (p *printer) content(block mcp.Content) error {
	switch b := block.(type) {
	case *mcp.Text:
		return p.text(b.Text)
	case *mcp.Image:
		return p.binary(b.MIMEType, b.Data, "")
	case *mcp.Audio:
		return p.binary(b.MIMEType, b.Data, "")
	case *mcp.ResourceLink:
		return p.line("[resource %s%s]", clean(b.URI), note(b.Name, b.MIMEType))
	case *mcp.EmbeddedResource:
		return p.resource(&b.Resource)
	case *mcp.UnknownContent:
		return p.json(b.Raw)
	}
	raw, err := mcp.NewJSON(block)
	if err != nil {
		return err
	}
	return p.json(raw)
}

func (p *printer) resource(r *mcp.ResourceContents) error {
	if r.Text != nil {
		return p.text(*r.Text)
	}
	return p.binary(r.MIMEType, r.Blob, r.URI)
}

// text prints a text, with an end to its last line.
func (p *printer) text(text string) error {
	if p.safe {
		text = harmlessText(text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(p.w, text)
	return err
}

// json prints a value in many lines for people, and as it came into a pipe.
func (p *printer) json(raw mcp.JSON) error {
	v := jsontext.Value(raw).Clone()
	if p.safe {
		// What cannot be indented is shown as it is.
		_ = v.Indent(jsontext.WithIndent("  "))
	}
	return p.text(string(v))
}

// binary saves bytes, or says what they are.
func (p *printer) binary(mimeType string, data []byte, uri string) error {
	if p.saver.out == "" {
		if mimeType == "" {
			mimeType = "binary"
		}
		return p.line("[%s, %s; --out FILE keeps it]", clean(mimeType), size(len(data)))
	}
	return p.saver.save(mimeType, data, uri)
}

func (p *printer) line(format string, args ...any) error {
	_, err := fmt.Fprintf(p.w, format+"\n", args...)
	return err
}

// note adds what is known of something beside its name.
func note(parts ...string) string {
	var known []string
	for _, part := range parts {
		if part != "" {
			known = append(known, clean(part))
		}
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, ", ") + ")"
}

// size shows a number of bytes.
func size(n int) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// firstText is the first text of some content.
func firstText(content mcp.Contents) string {
	for _, block := range content {
		if text, ok := block.(*mcp.Text); ok {
			return shorten(text.Text, maxText)
		}
	}
	return ""
}

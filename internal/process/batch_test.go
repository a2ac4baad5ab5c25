package process_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

const cmdExe = `C:\Windows\System32\cmd.exe`

func TestBatchLineQuotes(t *testing.T) {
	const npx = `C:\Program Files\nodejs\npx.cmd`
	for _, c := range []struct{ arg, want string }{
		{`plain-1.0`, `plain-1.0`},
		{`@scope/pkg@latest`, `@scope/pkg@latest`},
		{``, `""`},
		{`a b`, `"a b"`},
		{`say "hi"`, `"say ""hi"""`},
		{`a&calc`, `"a&calc"`},
		{`"&calc`, `"""&calc"`},
		{`\""`, `"\\"""""`},
		{`\"&calc`, `"\\""&calc"`},
		{`%PATH%`, `"%%cd:~,%PATH%%cd:~,%"`},
		{`a^b`, `"a^b"`},
		{`a!b!`, `"a!b!"`},
		{`C:\dir\`, `"C:\dir\\"`},
		{`C:\dir\f.txt`, `C:\dir\f.txt`},
		{`a b\\`, `"a b\\\\"`},
		{`a|b>c<d`, `"a|b>c<d"`},
		{`(x),y;z=1`, `"(x),y;z=1"`},
		{"tab\there", "\"tab\there\""},
		{`ü`, `"ü"`},
	} {
		got, err := process.BatchLine(cmdExe, npx, []string{c.arg})
		want := `"` + cmdExe + `" /e:ON /v:OFF /d /c ""` + npx + `" ` + c.want + `"`
		if err != nil || got != want {
			t.Errorf("%q:\n got %s, %v\nwant %s", c.arg, got, err, want)
		}
	}
}

func TestBatchLineRefusesWhatHasNoEscape(t *testing.T) {
	for _, arg := range []string{"a\nb", "a\rb", "a\x00b"} {
		if got, err := process.BatchLine(cmdExe, `C:\x.cmd`, []string{"ok", arg}); err == nil {
			t.Errorf("%q: %s", arg, got)
		} else if !strings.Contains(err.Error(), "argument 2") {
			t.Error(err)
		}
	}
	if got, err := process.BatchLine(cmdExe, `C:\x".cmd`, nil); err == nil {
		t.Errorf("file name with a quote: %s", got)
	}
	got, err := process.BatchLine(cmdExe, `C:\100%\x.cmd`, nil)
	if want := `"` + cmdExe + `" /e:ON /v:OFF /d /c ""C:\100%%cd:~,%\x.cmd""`; err != nil || got != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestIsBatch(t *testing.T) {
	for file, want := range map[string]bool{
		`C:\x\npx.cmd`: true, `C:\x\npx.CMD`: true, `run.bat`: true, `run.bat. .`: true,
		`node.exe`: false, `C:\x.cmd\node`: false, `cmd`: false, ``: false,
	} {
		if got := process.IsBatch(file); got != want {
			t.Errorf("IsBatch(%q) = %v", file, got)
		}
	}
}

func TestWindowsLookup(t *testing.T) {
	const nodejs = `C:\Program Files\nodejs`
	files := map[string]bool{
		nodejs + `\npx`: true, nodejs + `\npx.cmd`: true, nodejs + `\npx.ps1`: true,
		nodejs + `\node.exe`: true, `C:\tools\only.ps1`: true, `C:\tools\dotted.v2.exe`: true,
		`C:\work\srv.exe`: true, `C:\work\sub\run.bat`: true, `.\here.exe`: true,
	}
	const path = `C:\tools;"` + nodejs + `\";.`
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{name: `npx`, want: nodejs + `\npx.cmd`},
		{name: `npx.cmd`, want: nodejs + `\npx.cmd`},
		{name: nodejs + `\npx.cmd`, want: nodejs + `\npx.cmd`},
		{name: nodejs + `\npx`, want: nodejs + `\npx.cmd`},
		{name: `node`, want: nodejs + `\node.exe`},
		{name: `dotted.v2`, want: `C:\tools\dotted.v2.exe`},
		{name: `.\srv`, want: `C:\work\.\srv.exe`},
		{name: `\work\srv`, want: `C:\work\srv.exe`},
		{name: `/work/sub/run`, want: `C:/work/sub/run.bat`},
		{name: `C:srv`, err: process.ErrNotFound},
		{name: `srv.exe:stream`, err: process.ErrNotFound},
		{name: `.\srv.exe:stream.exe`, err: process.ErrNotFound},
		{name: `sub/run`, want: `C:\work\sub/run.bat`},
		{name: `sub\run`, want: `C:\work\sub\run.bat`},
		{name: `srv`, err: process.ErrNotFound}, // not from the current directory
		{name: `only`, err: process.ErrNotExecutable},
		{name: `only.ps1`, err: process.ErrNotExecutable},
		{name: `C:\tools\only.ps1`, err: process.ErrNotExecutable},
		{name: `here`, err: exec.ErrDot},
		{name: `nope`, err: process.ErrNotFound},
	} {
		got, err := process.FindWindows(c.name, `C:\work`, path, "", files)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
	for _, ext := range []string{".CMD;.EXE", "CMD;EXE", ";.;cmd"} {
		if got, err := process.FindWindows(`npx`, `C:\work`, path, ext, files); err != nil || got != nodejs+`\npx.cmd` {
			t.Errorf("npx with PATHEXT %s: %q, %v", ext, got, err)
		}
	}
	root := map[string]bool{`C:\a.exe`: true, `C:\b.exe`: true, `\\host\share\c.exe`: true, `\\host\share\work\d.exe`: true}
	for name, want := range map[string]string{
		`a`: `C:\a.exe`, `\a`: `C:\a.exe`, `/b`: `C:/b.exe`, `C:/b.exe`: `C:/b.exe`, `\\host\share\c`: `\\host\share\c.exe`,
	} {
		if got, err := process.FindWindows(name, `C:\work`, `C:\`, "", root); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, dir := range []string{`\\host\share\work`, `\\host\share`} {
		if got, err := process.FindWindows(`\c`, dir, "", "", root); err != nil || got != `\\host\share\c.exe` {
			t.Errorf("in %s: %q, %v", dir, got, err)
		}
	}
	if _, err := process.FindWindows(`\c`, `\\host`, "", "", root); !errors.Is(err, process.ErrNotFound) { // which has no share
		t.Errorf(`in \\host: %v`, err)
	}
	if _, err := process.FindWindows(`npx`, `C:\work`, path, ".EXE", files); !errors.Is(err, process.ErrNotExecutable) {
		t.Errorf("npx with PATHEXT .EXE: %v", err)
	}
}

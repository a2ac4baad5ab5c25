package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file below dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReportFailsOnWhatIsNotAsItShouldBe(t *testing.T) {
	const (
		good    = `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"INFO"}]`
		bad     = `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"no"}]`
		warned  = `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"WARNING","errorMessage":"hm"}]`
		skipped = `[{"id":"a","status":"SKIPPED"}]`
		partly  = `[{"id":"a","status":"SKIPPED"},{"id":"b","status":"SUCCESS"}]`
	)
	tests := []struct {
		name      string
		scenarios map[string]string
		required  string
		baseline  string
		ok        bool
		says      string
	}{
		{name: "all passed", scenarios: map[string]string{"x": good, "y-z": good}, required: "- x", ok: true, says: "conformance server: 2/2\n"},
		{name: "a failure", scenarios: map[string]string{"x": bad}, says: "x: FAILURE: b: no"},
		{name: "a warning", scenarios: map[string]string{"x": warned}, says: "x: WARNING: b: hm"},
		{name: "nothing checked", scenarios: map[string]string{"x": skipped}, says: "x: nothing was checked"},
		{name: "a known failure", scenarios: map[string]string{"x": good, "y": bad}, baseline: "y: later", ok: true, says: "1 known not to pass"},
		{name: "a known one that is skipped", scenarios: map[string]string{"x": good, "y": skipped}, baseline: "y: later", ok: true, says: "conformance server: 1/1\n"},
		{name: "a known one that is partly skipped", scenarios: map[string]string{"x": partly, "y": partly}, baseline: "y: later", ok: true, says: "conformance server: 1/1\n"},
		{name: "a known one that passes", scenarios: map[string]string{"x": good, "y": good}, baseline: "y: later", says: "y: passed, and is in the baseline"},
		{name: "a known one that did not run", scenarios: map[string]string{"x": good}, baseline: "y: later", says: "y: is in the baseline, and no set has run it"},
		{name: "a required one that is known", scenarios: map[string]string{"x": good, "y": bad}, required: "- y", baseline: "y: later", ok: true, says: "0/0 required, 1/1 others"},
		{name: "a required one that did not run", scenarios: map[string]string{"x": good}, required: "- y", says: "y: did not run"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for scenario, checks := range test.scenarios {
				write(t, dir, "out/server-"+scenario+"-2026-11-30T11-15-20-478Z/checks.json", checks)
			}
			arg := "set=" + filepath.Join(dir, "out")
			if test.required != "" {
				arg += "," + write(t, dir, "required", "Server scenarios (test against a server):\n  "+test.required+"\n\nClient scenarios:\n  - not-one\n")
			}
			var out strings.Builder
			ok, err := report(&out, "server", write(t, dir, "baseline", "# known\n"+test.baseline+"\n"), []string{arg})
			if err != nil {
				t.Fatal(err)
			}
			if ok != test.ok || !strings.Contains(out.String(), test.says) {
				t.Errorf("ok is %v, not %v, or %q is not in the report:\n%s", ok, test.ok, test.says, &out)
			}
		})
	}
}

func TestReportWithoutResultsIsAnError(t *testing.T) {
	if _, err := report(&strings.Builder{}, "server", "", []string{"set=" + t.TempDir()}); err == nil {
		t.Error("a folder without results was taken for a set")
	}
}

func TestReportOfTheClient(t *testing.T) {
	const good = `[{"id":"a","status":"SUCCESS"}]`
	const folder = "-2026-11-30T11-15-20-478Z/"
	tests := []struct {
		name  string
		files map[string]string
		ok    bool
		says  string
	}{
		{"plain and nested folders", map[string]string{"x" + folder + "checks.json": good, "auth/y-z" + folder + "checks.json": good},
			true, "conformance client set: 1/1 required, 1/1 others, 2 checks, 0 known not to pass\nconformance client: 2/2\n"},
		{"a client that was silent", map[string]string{"auth/y-z" + folder + "checks.json": good, "auth/y-z" + folder + "stderr.txt": "\n"},
			true, "conformance client: 1/1\n"},
		{"a client that has complained", map[string]string{"auth/y-z" + folder + "checks.json": good, "auth/y-z" + folder + "stderr.txt": "no luck\nat all\n"},
			false, "  set, auth/y-z: no luck\n"},
		{"a required one that did not run", map[string]string{"x" + folder + "checks.json": good}, false, "auth/y-z: did not run"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				write(t, dir, "out/"+name, text)
			}
			required := write(t, dir, "required", "Server scenarios:\n  - not-one\n\nClient scenarios:\n  - auth/y-z\n\nNever scored:\n  - late [client]\n")
			var out strings.Builder
			ok, err := report(&out, "client", "", []string{"set=" + filepath.Join(dir, "out") + "," + required})
			if err != nil {
				t.Fatal(err)
			}
			if ok != test.ok || !strings.Contains(out.String(), test.says) {
				t.Errorf("ok is %v, not %v, or %q is not in the report:\n%s", ok, test.ok, test.says, &out)
			}
		})
	}
}

func TestReportRefusesFoldersOfTheOtherSide(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x-2026-11-30T11-15-20-478Z/checks.json", `[]`)
	if _, err := report(&strings.Builder{}, "server", "", []string{"set=" + dir}); err == nil {
		t.Error("a result of the client was taken for one of the server")
	}
}

func TestReportOfAnUnknownSideIsAnError(t *testing.T) {
	if _, err := report(&strings.Builder{}, "middle", "", nil); err == nil {
		t.Error("the middle was taken for a side")
	}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	json "github.com/go-json-experiment/json"
)

// A side is what was under test.
type side struct {
	folders string // what the names of its results' folders begin with
	heading string // of its scenarios in the suite's lists
}

var sides = map[string]side{
	"client": {"", "Client scenarios"},
	"server": {"server-", "Server scenarios"},
}

// A set is what one run of the suite has found.
type set struct {
	name      string
	required  []string // scenarios
	scenarios map[string]result
}

// A result is what a scenario has found.
type result struct {
	checks    []check
	complaint string // of our program, if the suite has started it
}

// A check is one finding of a scenario.
type check struct {
	ID     string `json:"id"`
	Status string `json:"status"` // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	Error  string `json:"errorMessage"`
}

// A count is how many scenarios passed of those that ran.
type count struct{ passed, run int }

// A tally sums up a set.
type tally struct {
	required, others count
	checks           int // that passed
	known            int // scenarios of the baseline that did not pass
	wrong            int
}

func (t *tally) add(other tally) {
	t.required.passed += other.required.passed
	t.required.run += other.required.run
	t.others.passed += other.others.passed
	t.others.run += other.others.run
	t.checks += other.checks
	t.known += other.known
	t.wrong += other.wrong
}

// resultFolder is how the suite names the folder of a scenario's result. Those of
// a scenario with a slash in its name are nested.
var resultFolder = regexp.MustCompile(`^(.+)-\d{4}-\d{2}-\d{2}T[-0-9]+Z$`)

// readSet reads the set of an argument NAME=DIR[,REQUIRED].
func readSet(tested side, arg string) (*set, error) {
	name, place, ok := strings.Cut(arg, "=")
	if !ok {
		return nil, fmt.Errorf("%q is no NAME=DIR", arg)
	}
	dir, requiredFile, _ := strings.Cut(place, ",")
	s := &set{name: name, scenarios: make(map[string]result)}
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "checks.json" {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		unprefixed, ok := strings.CutPrefix(filepath.ToSlash(folder), tested.folders)
		scenario := resultFolder.FindStringSubmatch(unprefixed)
		if !ok || scenario == nil {
			return fmt.Errorf("%s: the name of its folder is none of a result", file)
		}
		s.scenarios[scenario[1]], err = readResult(file)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(s.scenarios) == 0 {
		return nil, fmt.Errorf("there are no results in %s", dir)
	}
	if requiredFile == "" {
		return s, nil
	}
	s.required, err = readRequired(requiredFile, tested.heading)
	return s, err
}

// readResult reads the checks of a scenario, and what stands beside them of our
// program's standard error.
func readResult(file string) (result, error) {
	var r result
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r.checks); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	said, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stderr.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.complaint, _, _ = strings.Cut(strings.TrimSpace(string(said)), "\n")
	return r, nil
}

// readRequired reads the scenarios under a heading of a requirement set as the
// suite lists it.
func readRequired(file, heading string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var scenarios []string
	under := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasPrefix(line, " ") {
			under = strings.HasPrefix(line, heading) || under && line == ""
		}
		if scenario, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok && under {
			scenarios = append(scenarios, scenario)
		}
	}
	if len(scenarios) == 0 {
		return nil, fmt.Errorf("%s lists no scenarios under %q", file, heading)
	}
	return scenarios, nil
}

// judge sums the set up and writes what is wrong with it. Scenarios of the
// baseline that have run become listed.
func (s *set) judge(w io.Writer, known map[string]string, listed map[string]bool) tally {
	var t tally
	for _, scenario := range s.names() {
		r := s.scenarios[scenario]
		outcome, checks := r.judge()
		t.checks += checks
		_, isKnown := known[scenario]
		if isKnown {
			listed[scenario] = true
		}
		switch {
		case isKnown && (outcome != "" || r.skips()):
			t.known++
			continue
		case isKnown:
			outcome = "passed, and is in the baseline"
		}
		counted := &t.others
		if slices.Contains(s.required, scenario) {
			counted = &t.required
		}
		counted.run++
		if outcome == "" {
			counted.passed++
			continue
		}
		t.wrong++
		fmt.Fprintf(w, "  %s, %s: %s\n", s.name, scenario, outcome)
	}
	for _, scenario := range s.required {
		if _, ran := s.scenarios[scenario]; !ran {
			t.required.run++
			t.wrong++
			fmt.Fprintf(w, "  %s, %s: did not run\n", s.name, scenario)
		}
	}
	return t
}

func (s *set) names() []string {
	names := make([]string, 0, len(s.scenarios))
	for name := range s.scenarios {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// judge returns what is wrong with a scenario, "" for nothing, and how many of
// its checks passed.
func (r *result) judge() (outcome string, passed int) {
	for _, c := range r.checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			if outcome == "" {
				outcome = fmt.Sprintf("%s: %s: %s", c.Status, c.ID, c.Error)
			}
		}
	}
	switch {
	case outcome != "":
	case r.complaint != "":
		outcome = r.complaint
	case passed == 0:
		outcome = "nothing was checked"
	}
	return outcome, passed
}

// skips reports whether some checks were left out, as are those of an extension
// that our side does not declare.
func (r *result) skips() bool {
	return slices.ContainsFunc(r.checks, func(c check) bool { return c.Status == "SKIPPED" })
}

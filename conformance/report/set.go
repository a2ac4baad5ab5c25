package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	json "github.com/go-json-experiment/json"
)

// A set is what one run of the suite has found.
type set struct {
	name      string
	required  []string // scenarios
	scenarios map[string][]check
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

// resultFolder is how the suite names the folder of a scenario's result.
var resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d{2}-\d{2}T[-0-9]+Z$`)

// readSet reads the set of an argument NAME=DIR[,REQUIRED].
func readSet(arg string) (*set, error) {
	name, place, ok := strings.Cut(arg, "=")
	if !ok {
		return nil, fmt.Errorf("%q is no NAME=DIR", arg)
	}
	dir, requiredFile, _ := strings.Cut(place, ",")
	s := &set{name: name, scenarios: make(map[string][]check)}
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		folder := resultFolder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if folder == nil {
			return nil, fmt.Errorf("%s: the name of its folder is none of a result", file)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		s.scenarios[folder[1]] = checks
	}
	if len(s.scenarios) == 0 {
		return nil, fmt.Errorf("there are no results in %s", dir)
	}
	if requiredFile == "" {
		return s, nil
	}
	s.required, err = readRequired(requiredFile)
	return s, err
}

// readRequired reads the server scenarios of a requirement set as the suite lists
// it.
func readRequired(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var scenarios []string
	server := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasPrefix(line, " ") {
			server = strings.HasPrefix(line, "Server scenarios") || server && line == ""
		}
		if scenario, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok && server {
			scenarios = append(scenarios, scenario)
		}
	}
	if len(scenarios) == 0 {
		return nil, fmt.Errorf("%s lists no server scenarios", file)
	}
	return scenarios, nil
}

// judge sums the set up and writes what is wrong with it. Scenarios of the
// baseline that have run become listed.
func (s *set) judge(w io.Writer, known map[string]string, listed map[string]bool) tally {
	var t tally
	t.required.run = len(s.required)
	for _, scenario := range s.names() {
		outcome, checks := judge(s.scenarios[scenario])
		t.checks += checks
		counted := &t.others
		isRequired := slices.Contains(s.required, scenario)
		if isRequired {
			counted = &t.required
		}
		_, isKnown := known[scenario]
		if isKnown {
			listed[scenario] = true
		}
		switch {
		case isKnown && (outcome != "" || skips(s.scenarios[scenario])):
			t.known++
			continue
		case isKnown:
			outcome = "passed, and is in the baseline"
		}
		if !isRequired {
			counted.run++
		}
		if outcome == "" {
			counted.passed++
			continue
		}
		t.wrong++
		fmt.Fprintf(w, "  %s, %s: %s\n", s.name, scenario, outcome)
	}
	for _, scenario := range s.required {
		if s.scenarios[scenario] == nil {
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
func judge(checks []check) (outcome string, passed int) {
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			if outcome == "" {
				outcome = fmt.Sprintf("%s: %s: %s", c.Status, c.ID, c.Error)
			}
		}
	}
	if outcome == "" && passed == 0 {
		outcome = "nothing was checked"
	}
	return outcome, passed
}

// skips reports whether some checks were left out, as are those of an extension
// that the server does not declare.
func skips(checks []check) bool {
	return slices.ContainsFunc(checks, func(c check) bool { return c.Status == "SKIPPED" })
}

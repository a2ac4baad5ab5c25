package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Where packages come from.
const (
	npm      = "npm"
	pypi     = "PyPI"
	goModule = "Go"
)

// A pack is what a peer is made with. Without a registry it is a part of mcpsplice.
type pack struct{ registry, name string }

// version is the version of a package that the lock files of a source folder name,
// and "" for a part of mcpsplice.
func (p pack) version(source string) (string, error) {
	var version string
	var err error
	switch p.registry {
	case "":
		return "", nil
	case npm:
		version, err = npmVersion(filepath.Join(source, "peers", "node", "package-lock.json"), p.name)
	case pypi:
		version, err = versionAfter(filepath.Join(source, "peers", "python", "requirements.txt"), p.name+"==")
	case goModule:
		version, err = versionAfter(filepath.Join(source, "go.mod"), p.name+" ")
	}
	if err == nil && version == "" {
		err = fmt.Errorf("no version of %s package %s", p.registry, p.name)
	}
	return version, err
}

func npmVersion(lock, name string) (string, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return "", err
	}
	var locked struct {
		Packages map[string]struct {
			Version string `json:"version"`
		} `json:"packages"`
	}
	err = json.Unmarshal(text, &locked)
	return locked.Packages["node_modules/"+name].Version, err
}

// versionAfter reads what stands behind a name in a file with a package a line.
func versionAfter(file, name string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	line := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(name) + `(\S+)`)
	if match := line.FindSubmatch(text); match != nil {
		return string(match[1]), nil
	}
	return "", nil
}

// describe names a package with its version.
func (p pack) describe(source string) (string, error) {
	version, err := p.version(source)
	if p.registry == "" {
		return "our own " + p.name, nil
	}
	return fmt.Sprintf("%s `%s` %s", p.registry, p.name, version), err
}

// Package repotest holds the house rules as tests. It has no code of its own:
// each rule is a file of tests that reads the whole repository, and its failure
// messages name the section of CONTRIBUTING.md that explains the rule.
//
// A rule that must be broken somewhere has a list of exceptions at its head.
// Each entry gives a reason, and an entry that no longer excuses anything fails
// as well.
package repotest

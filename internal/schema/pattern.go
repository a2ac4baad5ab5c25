package schema

import (
	"fmt"
	"regexp/syntax"
)

// MaxPatternSize is how large a pattern of a schema may be, in about as many
// instructions as package regexp makes of it.
const MaxPatternSize = 10_000

// patternSize returns the size of a pattern, 0 for none. It is counted before
// anything is compiled: few characters can become millions of instructions.
func patternSize(pattern string) (int, error) {
	if pattern == "" {
		return 0, nil
	}
	if len(pattern) > MaxPatternSize {
		return 0, overPattern(len(pattern))
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	size := instructions(parsed)
	if size > MaxPatternSize {
		return 0, overPattern(size)
	}
	return size, nil
}

func overPattern(size int) error {
	return fmt.Errorf("a pattern of the size %d is over the limit MaxPatternSize of %d", size, MaxPatternSize)
}

func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

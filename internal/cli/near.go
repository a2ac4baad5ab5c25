package cli

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of what is looked at for near misses.
const (
	maxNear       = 3    // names that are suggested
	maxNearLength = 128  // characters of a name
	maxNearNames  = 2000 // names
	maxListed     = 12   // names that are listed if none is near
)

// didYouMean returns the hint for a name that is not among those that there are:
// the nearest ones, or all if they are few; empty if there is nothing to say.
func didYouMean(name string, names []string) string {
	if near := nearest(name, names); len(near) > 0 {
		return "did you mean " + joinOr(near) + "?"
	}
	if len(names) == 0 {
		return "there is none at all"
	}
	if len(names) > maxListed {
		return ""
	}
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = clean(n)
	}
	return "there is " + strings.Join(shown, ", ")
}

func joinOr(names []string) string {
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = clean(n)
	}
	if len(shown) < 2 {
		return strings.Join(shown, "")
	}
	return strings.Join(shown[:len(shown)-1], ", ") + " or " + shown[len(shown)-1]
}

// nearest returns the names that are likely to have been meant, the nearest
// first.
func nearest(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	wanted := folded(name)
	limit := max(len(wanted)/3, min(len(wanted)-1, 1))
	for _, n := range names[:min(len(names), maxNearNames)] {
		other := folded(n)
		d := limit + 1
		if max(len(wanted)-len(other), len(other)-len(wanted)) <= limit {
			d = distance(wanted, other)
		}
		if len(wanted) >= 3 && strings.Contains(string(other), string(wanted)) {
			d = min(d, limit)
		}
		if d <= limit {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var found []string
	for _, c := range near[:min(len(near), maxNear)] {
		found = append(found, c.name)
	}
	return found
}

// folded returns a name without what people mistake in names.
func folded(name string) []rune {
	runes := []rune(strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name)))
	return runes[:min(len(runes), maxNearLength)]
}

// distance returns how many characters must be added, removed, changed or swapped
// with their neighbour to make one text of the other.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Package share says how much of a limit one of those who share it may have.
package share

// Times is how many times what it leaves of a limit one may have. So whoever comes finds
// something, whatever others have taken: one alone takes three quarters, and of two that
// take all they can each has three sevenths.
const Times = 3

// Allows reports whether one who has own of a limit, of which some is left, may have n
// more.
func Allows(own, n, left int) bool {
	return n <= left && (own+n)/Times <= left-n
}

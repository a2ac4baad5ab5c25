//go:build unix

package process

import "slices"

// GuardianPID returns the process id of the guardian, or 0 when none runs.
func GuardianPID() int {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.keeper == nil || guard.keeper.process == nil {
		return 0
	}
	return guard.keeper.process.Pid
}

// GuardianGroups returns the registered groups.
func GuardianGroups() int {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	return len(guard.groups)
}

// GroupsOf feeds the guardian's reader and returns the groups that are left.
func GroupsOf(chunks ...string) []int {
	groups := make(map[int]bool)
	var rest []byte
	for _, c := range chunks {
		rest = applyLines(groups, append(rest, c...))
	}
	var ids []int
	for id := range groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

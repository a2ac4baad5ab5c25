//go:build unix && !linux

package process

// dropInherited does nothing here: which descriptors are the runtime's own
// cannot be told. What our parent had inherited without close-on-exec stays
// open until the guardian ends, a few seconds after the process that it guards.
func dropInherited() {}

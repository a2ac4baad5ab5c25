//go:build !unix

package rounds

import "time"

// processorTime returns 0: the system does not tell in the same way.
func processorTime() time.Duration { return 0 }

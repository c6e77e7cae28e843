//go:build !unix

package trace

import "math"

// addressSpace returns no limit on this platform.
func addressSpace() uint64 { return math.MaxUint64 }

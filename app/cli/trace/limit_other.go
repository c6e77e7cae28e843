//go:build !unix

package trace

import "math"

// addressSpace has no limit that would be known.
func addressSpace() uint64 { return math.MaxUint64 }

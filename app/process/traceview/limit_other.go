//go:build !unix

package traceview

import "math"

// addressSpace has no limit that would be known.
func addressSpace() uint64 { return math.MaxUint64 }

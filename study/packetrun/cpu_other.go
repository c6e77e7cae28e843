//go:build !unix

package packetrun

import "time"

var began = time.Now()

// CPUSeconds returns the wall time where a process cannot ask for its CPU time.
func CPUSeconds() float64 { return time.Since(began).Seconds() }

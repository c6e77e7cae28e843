//go:build !unix

package packetrun

import "time"

var began = time.Now()

// cpuSeconds returns the wall time where a process cannot ask for its CPU time.
func cpuSeconds() float64 { return time.Since(began).Seconds() }

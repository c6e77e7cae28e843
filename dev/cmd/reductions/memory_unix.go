//go:build unix && !darwin

package main

import (
	"os"
	"syscall"
)

// memory is the largest resident set of a process that ended, in MB.
func memory(p *os.ProcessState) float64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return float64(u.Maxrss) / 1024
	}
	return 0
}

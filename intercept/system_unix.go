//go:build unix

package intercept

import (
	"os/exec"
	"syscall"
)

// nonBlock has a pipe without a writer be opened at once.
const nonBlock = syscall.O_NONBLOCK

// signalOf is the number of the signal that ended a program.
func signalOf(e *exec.ExitError) int {
	if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return int(s.Signal())
	}
	return 0
}

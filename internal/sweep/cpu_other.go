//go:build !linux

package sweep

import "time"

var started = time.Now()

// cpu is the time that passed: this system has no clock of a thread.
func cpu() time.Duration { return time.Since(started) }

//go:build !unix

package intercept

import "os/exec"

const nonBlock = 0

func signalOf(*exec.ExitError) int { return 0 }

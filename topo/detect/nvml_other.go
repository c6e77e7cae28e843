//go:build !linux || (!cgo && !amd64 && !arm64)

package detect

import "runtime"

// NVML answers that this platform has none.
func NVML() ([]GPU, error) {
	return nil, &AbsentError{"NVML on Linux", runtime.GOOS + "/" + runtime.GOARCH}
}

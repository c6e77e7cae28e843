//go:build !linux || (!cgo && !amd64 && !arm64)

package detect

import "runtime"

// NVML returns an AbsentError: this platform has no NVML.
func NVML() ([]GPU, error) {
	return nil, &AbsentError{"NVML on Linux", runtime.GOOS + "/" + runtime.GOARCH}
}

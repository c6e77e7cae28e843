// Package real is the half of simccl that moves bytes on hardware. Its rooms
// open their libraries at run time: real/bootstrap (TCP rendezvous of ranks),
// and, as they land, real/ibv (InfiniBand verbs), real/cuda and real/nccl.
package real

import "github.com/simccl/simccl/exec"

// Backend names a hardware executor.
type Backend string

// Backends.
const (
	NCCL  Backend = "nccl"
	CUDA  Backend = "cuda"
	Verbs Backend = "verbs"
)

// Open returns the executor of a backend. Every backend is a typed
// *exec.NotImplementedError until its room lands.
func Open(b Backend) (exec.Executor, error) {
	return nil, &exec.NotImplementedError{Feature: "backend " + string(b), Missing: "its executor under real/"}
}

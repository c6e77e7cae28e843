package device

import "github.com/simccl/simccl/real/internal/cuda"

// Method is how a session runs an operation: by NCCL, by the plan's schedule,
// or by one of the free algorithms of real/internal/cuda.
type Method uint8

// Methods other than the free algorithms, which Free makes.
const (
	NCCL      Method = iota // the library's own choice
	Planned                 // the plan's schedule, run by kernels (Op.Plan)
	firstFree               // cuda's shapes follow in their order
)

// Free is the method that runs a free algorithm.
func Free(s cuda.Shape) Method { return firstFree + Method(s) }

// shape returns the free algorithm of a method; ok is false for NCCL and
// Planned.
func (m Method) shape() (s cuda.Shape, ok bool) {
	if m < firstFree {
		return 0, false
	}
	return cuda.Shape(m - firstFree), true
}

// String names a method as tables and --algo do.
func (m Method) String() string {
	switch s, free := m.shape(); {
	case free:
		return s.String()
	case m == Planned:
		return "plan"
	}
	return "nccl"
}

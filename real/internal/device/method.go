package device

import "github.com/simccl/simccl/real/internal/cuda"

// Method is the way in which a session runs an operation: by NCCL, by a plan's schedule, or by one of the
// free algorithms of real/internal/cuda.
type Method uint8

// Methods other than the free algorithms, for which see Free.
const (
	NCCL      Method = iota // the library's own choice
	Planned                 // the plan's schedule, executed by kernels (Case.Plan)
	firstFree               // cuda's shapes follow, in their order
)

// Free returns the method that runs a free algorithm.
func Free(s cuda.Shape) Method { return firstFree + Method(s) }

// shape returns the free algorithm of a method; ok is false for NCCL and
// Planned.
func (m Method) shape() (s cuda.Shape, ok bool) {
	if m < firstFree {
		return 0, false
	}
	return cuda.Shape(m - firstFree), true
}

// String returns a method's name in tables and --algo.
func (m Method) String() string {
	switch s, free := m.shape(); {
	case free:
		return s.String()
	case m == Planned:
		return "plan"
	}
	return "nccl"
}

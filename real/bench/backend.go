package bench

import (
	"context"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// What a session of GPUs takes, and CPUs understand as well.
type (
	// Op is one operation of the whole communicator.
	Op = device.Case
	// Options say how it is measured.
	Options = device.Options
	// Average says how the ranks' times become one.
	Average = device.Average
	// Wait says what comes after each iteration.
	Wait = device.Wait
	// Work is compute beside operations, Beside what both take.
	Work   = device.Work
	Beside = device.Beside
	// Registration says how NCCL knows the buffers beforehand.
	Registration = device.Registration
)

// Backend runs operations on hardware. All processes of a run call it in the same order.
type Backend interface {
	About() About
	// Measure times an operation and checks its result.
	Measure(ctx context.Context, op *device.Case, o device.Options) (Measurement, error)
	Close() error
}

// About describes a backend.
type About struct {
	Devices  []nccltests.Device // of all ranks, on every process
	Headers  int                // version of NCCL's headers, as nccl-tests prints it
	Library  int                // version of NCCL's library, 0 without one
	Threads  int                // ranks of a process, for the table's head
	Describe string             // driver and library, for the table's head
}

// Measurement is what a backend found.
type Measurement struct {
	device.Measurement
	Shape  string  // what ran: nccl, plan or a free algorithm; "-": nothing to choose
	Picks  []Pick  // the algorithms among which Shape was picked
	Choice *Choice // by which a plan was made, where one ran on CPUs
}

// Choice is what NCCL's cost model decides of an operation.
type Choice struct {
	Algo     string
	Proto    string
	Channels int
	ModelUs  float64 // the model's own prediction
}

// Rival is an algorithm and protocol that NCCL can be made to take.
type Rival struct {
	Algo  coll.Algorithm
	Proto coll.Protocol
}

// String is the rival as NCCL logs it.
func (v Rival) String() string { return v.Algo.LogName() + "/" + v.Proto.LogName() }

// Model is what NCCL's rules say of the machine that is measured.
type Model interface {
	// Plan is what NCCL would do for an operation.
	Plan(op *device.Case) (*plan.Plan, Choice, error)
	// Predict is what is expected of it.
	Predict(ctx context.Context, op *device.Case) (*Prediction, error)
	// Rivals lists what NCCL's cost model has a time for, without its choice.
	Rivals(op *device.Case) []Rival
}

// Prediction is what a simulation expects. Facts are for columns and the JSON's
// own key.
type Prediction struct {
	SimUs float64
	Facts any
}

// NewModel makes the model of the machine with these devices.
type NewModel func(devices []nccltests.Device) (Model, error)

// Forcer is a backend that opens another of itself in which NCCL takes nothing
// but a rival. All processes call it in the same order.
type Forcer interface {
	Force(ctx context.Context, v Rival) (Backend, error)
}

// comparer is a backend that reports NCCL's own time of what it ran by itself, 0
// where NCCL is not there.
type comparer interface {
	ncclTime(ctx context.Context, op *device.Case, o device.Options) (units.Time, error)
}

// rememberer is a backend that reports the device memory it takes.
type rememberer interface {
	memory() ([]nccltests.MemoryUse, error)
}

// tracer is a backend that writes a trace of one operation.
type tracer interface {
	trace(ctx context.Context, op *device.Case, to Trace) (*chrome.Writer, error)
}

// PlanError is a plan that could not be made: of the operation and the machine,
// no matter what other ranks do.
type PlanError struct{ Err error }

func (e *PlanError) Error() string { return e.Err.Error() }
func (e *PlanError) Unwrap() error { return e.Err }

// Local marks the error as one of this process.
func (e *PlanError) Local() {}

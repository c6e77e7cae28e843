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

// Types of package device that all backends use, CPUs included.
type (
	// Op is one operation of the whole communicator.
	Op = device.Case
	// Options say how the operation is measured.
	Options = device.Options
	// Average says how the ranks' times are combined.
	Average = device.Average
	// Wait says what follows each iteration.
	Wait = device.Wait
	// Work is compute that runs at the same time as operations, Beside the times of both.
	Work   = device.Work
	Beside = device.Beside
	// Registration says how NCCL knows the buffers before an operation.
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

// Measurement is the result of measuring an operation.
type Measurement struct {
	device.Measurement
	Shape  string  // method that ran: nccl, plan or a free algorithm; "-": there was no choice
	Picks  []Pick  // the algorithms among which Shape was picked
	Choice *Choice // choice behind the plan, if CPUs ran one
}

// Choice is the decision of NCCL's cost model for an operation.
type Choice struct {
	Algo     string
	Proto    string
	Channels int
	ModelUs  float64 // the model's own prediction
}

// Rival is an algorithm and protocol that NCCL can be forced to use.
type Rival struct {
	Algo  coll.Algorithm
	Proto coll.Protocol
}

// String returns the rival as NCCL logs it.
func (v Rival) String() string { return v.Algo.LogName() + "/" + v.Proto.LogName() }

// Model answers what NCCL's rules say for the measured machine.
type Model interface {
	// Plan returns NCCL's plan for an operation.
	Plan(op *device.Case) (*plan.Plan, Choice, error)
	// Predict returns the predicted time of an operation.
	Predict(ctx context.Context, op *device.Case) (*Prediction, error)
	// Rivals lists the algorithms and protocols for which NCCL's cost model has a time, without its choice.
	Rivals(op *device.Case) []Rival
}

// Prediction is the result of a simulation. Facts are for columns and for simccl's own key of the JSON.
type Prediction struct {
	SimUs float64
	Facts any
}

// NewModel makes the model of the machine with these devices.
type NewModel func(devices []nccltests.Device) (Model, error)

// Forcer is a backend that can open a copy of itself in which NCCL uses only a given rival. All processes
// call it in the same order.
type Forcer interface {
	Force(ctx context.Context, v Rival) (Backend, error)
}

// comparer is a backend that reports NCCL's own time of the operation that it ran by another method; 0 if
// NCCL is not available.
type comparer interface {
	ncclTime(ctx context.Context, op *device.Case, o device.Options) (units.Time, error)
}

// rememberer is a backend that reports the device memory it uses.
type rememberer interface {
	memory() ([]nccltests.MemoryUse, error)
}

// tracer is a backend that writes a trace of one operation.
type tracer interface {
	trace(ctx context.Context, op *device.Case, to Trace) (*chrome.Writer, error)
}

// PlanError reports a plan that could not be made. The cause is the operation or the machine, not another
// rank.
type PlanError struct{ Err error }

func (e *PlanError) Error() string { return e.Err.Error() }
func (e *PlanError) Unwrap() error { return e.Err }

// Local marks the error as one of this process.
func (e *PlanError) Local() {}

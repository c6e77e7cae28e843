// Package simccl simulates what NCCL does on a machine, without the machine: it
// is the door to the library behind the command simccl. Run takes a Spec, which
// names machines, NCCL's settings, the network and the operations, and returns
// each size's choice, time and limiting link.
//
// The stages can be used one by one:
//
//	scenario     Spec, Load, Run, Expand: a run as a value
//	topo/xml     Parse: NCCL's topo.xml becomes a topo.Spec
//	topo/fabric  New: hosts of such Specs become a cluster; networks between them
//	config       Load: NCCL_* settings become the parameters of every stage
//	comm         New: search, channels and cost model; Choose, Plan
//	explain      New, Compare: why a choice was made; why two settings differ
//	plan         the operations of every rank; Check proves them
//	sim          New, Run: the plan on a virtual clock
//	trace/chrome, trace/profile  where a run is written to
//	exec         Executor and Result, which simulation and hardware share
//
// docs/LIBRARY.md says which of these are stable.
package simccl

import (
	"context"

	"github.com/simccl/simccl/scenario"
)

// Spec is one run, or with a Grid a family of runs, as data.
type Spec = scenario.Spec

// The members of a Spec.
type (
	Machine  = scenario.Machine  // which computers there are
	Nodes    = scenario.Nodes    // equal nodes
	NCCL     = scenario.NCCL     // the library's settings
	Network  = scenario.Network  // what joins the nodes
	Workload = scenario.Workload // the operation and its sizes
	Range    = scenario.Range    // a sweep of sizes
	Engine   = scenario.Engine   // how times are found
	Outputs  = scenario.Outputs  // files about one operation
	Axis     = scenario.Axis     // one dimension of a Grid
)

// Options say where files come from and go to, and who receives warnings and
// progress. They change no result.
type Options = scenario.Options

// Result is what a run came to, as data.
type Result = scenario.Result

// Run simulates a Spec without a Grid. Errors say what to do: a
// *scenario.FieldError names a member of the Spec, a *scenario.InputError an input
// file with line and column, a *config.Error a setting.
func Run(ctx context.Context, spec Spec, opt Options) (*Result, error) {
	return scenario.Run(ctx, spec, opt)
}

// JobResult is what a job of several operations came to.
type JobResult = scenario.JobResult

// RunJob runs the job of a Spec (Workload.Job): several communicators, streams and
// compute at once. Errors are those of Run, and of a job that never ends.
func RunJob(ctx context.Context, spec Spec, opt Options) (*JobResult, error) {
	return scenario.RunJob(ctx, spec, opt)
}

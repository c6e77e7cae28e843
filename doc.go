// Package simccl is the door to a library that says what NCCL 2.28.9 decides on
// a machine, and how long it takes; the code is in the packages below, and the
// command simccl is made of nothing else. The example goes the whole way, from
// a topology file to a trace:
//
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

// Package decide has the commands that print decisions of NCCL for a machine, and compare them: inspect,
// explain, tune, graph, plan, groups, env and check.
//
// What it must not know: how NCCL decides.
package decide

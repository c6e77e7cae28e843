package main

import "github.com/simccl/simccl/exec"

// executor makes the simulator for a machine.
func (r *runFlags) executor(*machine) (exec.Executor, error) {
	return nil, notYet("run", "the simulator")
}

// Command reductions measures what dev/reductions is about: what the simulator leaves out of an operation,
// and what that costs.
//
//	go run ./dev/cmd/reductions cliffs [-seed N] [-budget S] [-limit S] [-program FILE] FILE
//	go run ./dev/cmd/reductions margins [-seed N] [-pairs N] [-seconds S] FILE
//
// cliffs measures what default sweeps cost: processor time and memory of simccl run over a grid of nodes,
// operations, algorithms and machines, worst first. margins compares approximate times of random requests
// with exact ones: a time that is further off than its margin is a defect of the policy that chose how to
// find it. FILE gets a line for each sweep or request; a later call goes on with those that it has not.
package main

import "github.com/simccl/simccl/dev/subcommand"

func main() {
	subcommand.Run(map[string]func(){"cliffs": cliffs, "margins": margins})
}

// Command pages writes pages of the documentation and tables of them:
//
//	go run ./dev/cmd/pages env docs/ENV.md
//	go run ./dev/cmd/pages machines docs/results/MACHINES.md
//	go run ./dev/cmd/pages own testdata/measured/h200x2/own-2026-11-23 2
//	go run ./dev/cmd/pages upgrades testdata/topos docs/results/UPGRADES.md
//
// env is the table of variables. machines has the built-in machines with the source of
// each fact; with -beside the table of them beside public files. own makes the table of
// docs/results/HARDWARE.md that has every operation's fastest algorithm of ours beside NCCL, NCCL over
// symmetric windows and PyTorch's symmetric memory, from the files of PARTS=own scripts/device.sh. upgrades
// says what changes from each release of NCCL with rules to the next, on the machines in the directory.
package main

import "github.com/simccl/simccl/dev/subcommand"

func main() {
	subcommand.Run(map[string]func(){"env": envPage, "machines": machinesPage,
		"own": ownTable, "upgrades": upgradesPage})
}

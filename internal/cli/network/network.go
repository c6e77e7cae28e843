// Package network has the commands that simulate networks by packets.
package network

import (
	"github.com/simccl/simccl/internal/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/netrun"
	"github.com/simccl/simccl/internal/process"
	"github.com/spf13/cobra"
)

// maxFile bounds an input file.
const maxFile = 256 << 20

// Command is simccl network.
func Command(p *process.Process, json *bool) *cobra.Command {
	return cli.Group("network", "Simulate networks packet by packet", run(p, json))
}

func run(p *process.Process, json *bool) *cobra.Command {
	ns3, o := "", netrun.Options{Seed: 1, Workers: 1, Compat: "ns3", Poll: p.Cancelled, Warn: p.Warn}
	o.Read = func(name string) ([]byte, error) { return p.Read(name, maxFile) }
	c := &cobra.Command{Use: "run", Short: "Run a scenario of a packet simulator",
		Long: `run reads the configuration of the HPCC simulator on ns-3 with the topology and
flow files that it names, simulates every packet (PFC, ECN, DCQCN, HPCC, TIMELY,
DCTCP, go-back-N, ECMP) and prints when flows end, the deepest queue and the
pauses. Flow files may have dependency columns: the number of flows that a flow
waits for, and which, from 0.`,
		Example: "  simccl network run --ns3 config.txt\n  simccl network run --ns3 config.txt --seed 2 --timing --json",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if ns3 == "" {
				return fail.Usage("network run: name a configuration with --ns3")
			}
			r, err := netrun.NS3(ns3, o)
			if err != nil {
				return err
			}
			if *json {
				return p.Encode("", false, r)
			}
			return p.PrintText(r.Text())
		}}
	f := c.Flags()
	f.StringVar(&ns3, "ns3", "", "the configuration `FILE` of the HPCC simulator")
	f.StringVar(&o.Compat, "compat", o.Compat, "ns3: its frames and whole nanoseconds; none: RoCEv2 frames on Ethernet, exact times")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of marks and losses")
	f.IntVar(&o.Workers, "workers", o.Workers, "threads that simulate; the result does not depend on it")
	f.BoolVar(&o.Timing, "timing", false, "print the CPU time of the simulation, too")
	return c
}

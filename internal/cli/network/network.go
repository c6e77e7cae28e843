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
	ns3, cc, h := "", "", netrun.Htsim{Balance: "mixed"}
	o := netrun.Options{Seed: 1, Workers: 1, Compat: "ns3", Poll: p.Cancelled, Warn: p.Warn}
	o.Read = func(name string) ([]byte, error) { return p.Read(name, maxFile) }
	c := &cobra.Command{Use: "run", Short: "Run a scenario of a packet simulator",
		Long: `run reads the configuration of the HPCC simulator on ns-3 with the topology and
flow files that it names, simulates every packet (PFC, ECN, DCQCN, HPCC, TIMELY,
DCTCP, go-back-N, ECMP) and prints when flows end, the deepest queue and the
pauses. Flow files may have dependency columns: the number of flows that a flow
waits for, and which, from 0.

With --htsim it reads a connection matrix of htsim, with --topo its topology of
two or three tiers, and simulates Ultra Ethernet (--cc nscc: trimming, selective
acknowledgements, packets sprayed by --lb) or RoCE with PFC alone (--cc roce).`,
		Example: "  simccl network run --ns3 config.txt\n  simccl network run --ns3 config.txt --seed 2 --timing --json\n" +
			"  simccl network run --ns3 config.txt --cc swift --routing flowlet --watchdog 200\n" +
			"  simccl network run --htsim perm.cm --topo leafspine.topo --cc nscc --lb reps",
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range map[bool][]string{true: {"topo", "lb", "mtu"}, false: {"compat", "flowlet"}}[ns3 != ""] {
				if cmd.Flags().Changed(name) {
					return fail.Usage("network run: --%s is for %s", name, map[bool]string{true: "--htsim", false: "--ns3"}[ns3 != ""])
				}
			}
			switch {
			case o.Workers < 1:
				return fail.Usage("network run: --workers %d: write at least 1", o.Workers)
			case cmd.Flags().Changed("flowlet") && o.Routing != "flowlet":
				return fail.Usage("network run: --flowlet is for --routing flowlet")
			case cc == "roce" && !cmd.Flags().Changed("lb"):
				h.Balance = "ecmp"
			}
			r, err := simulate(ns3, cc, h, o)
			if err != nil {
				return cli.AsFlags(err)
			}
			if *json {
				return p.Encode("", false, r)
			}
			return p.PrintText(r.Text())
		}}
	f := c.Flags()
	f.StringVar(&ns3, "ns3", "", "the configuration `FILE` of the HPCC simulator")
	f.StringVar(&h.Matrix, "htsim", "", "the connection matrix `FILE` of htsim")
	f.StringVar(&h.Topo, "topo", "", "the topology `FILE` of htsim")
	f.StringVar(&cc, "cc", "", "of htsim: nscc (default) or roce; in place of a configuration's: "+netrun.Presets)
	f.StringVar(&o.Repair, "repair", "", "of losses: gbn (go-back-N), sr (selective repeat) or trim (switches cut frames to their headers, nothing pauses)")
	f.Float64Var(&o.TimeoutUs, "timeout", 0, "send again what is not acknowledged for `US` microseconds; 0: never")
	f.IntVar(&o.Retries, "retries", 0, "timeouts after which a flow fails; 0: never")
	f.Float64Var(&o.Alpha, "alpha", 0, "share of the free memory of a switch that a queue may take before it pauses its neighbour, a power of two up to `8`; 0: the configuration's")
	f.IntVar(&o.Quanta, "pause-quanta", 0, "`N` quanta of 512 bit times after which a pause ends by itself (IEEE 802.1Qbb, up to 65535); switches repeat it before; 0: it has no end")
	f.IntVar(&o.Through, "cut-through", 0, "first `BYTES` of a frame with which a switch begins to send it on (128 is usual), where the port is no faster than the link by which it comes; 0: store and forward")
	f.StringVar(&o.CNP, "cnp", "", "of DCQCN with --compat none: ack (default), acknowledgements are marked, or frame, receivers send CNPs (at least 4 µs apart, or as far as --cc has it)")
	f.StringVar(&o.MarkAt, "mark-at", "", "of ECN: dequeue (default), frames are marked by the queue that they leave behind, or enqueue, by the one that they find")
	f.Float64Var(&o.Messages, "message-rate", 0, "millions of flows that a host begins in a second (default no bound)")
	f.IntVar(&o.Paths, "paths", 0, "source ports that a flow's frames take in turn, with --repair sr")
	f.Int64Var(&o.Credits, "credits", 0, "`BYTES` of buffer behind each link: InfiniBand's credits in place of pauses")
	f.StringArrayVar(&o.Faults, "fault", nil, "A-B:`WHAT`[@FROM-TO]: a link that is down, slow=0.5, loss=0.01, flap=20/100 or under a storm of pauses, in µs after the first start; repeatable")
	f.StringVar(&o.Routing, "routing", "", "of switches: ecmp (default), adaptive (each frame to the shortest queue) or flowlet")
	f.Float64Var(&o.FlowletUs, "flowlet", 16, "`US` of silence after which a flow chooses its path again")
	f.Float64Var(&o.WatchUs, "watchdog", 0, "drop a queue of a switch that has been paused for `US`; 0: never")
	f.StringVar(&h.Balance, "lb", h.Balance, "of htsim: ecmp, oblivious, reps, bitmap or mixed; with roce ecmp alone, its default")
	f.IntVar(&h.MTU, "mtu", 0, "of htsim: bytes of a full frame with nscc (4150), of its payload with roce (1000)")
	f.StringVar(&o.Compat, "compat", o.Compat, "ns3: its frames and whole nanoseconds; ns3:exact: its order of events from the first frame on, too, also where nothing is marked (slower); none: RoCEv2 frames on Ethernet, exact times")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of marks and losses")
	f.IntVar(&o.Workers, "workers", o.Workers, "threads that simulate; the result does not depend on it")
	f.BoolVar(&o.Timing, "timing", false, "print the CPU time of the simulation, too")
	return c
}

// simulate runs what is named.
func simulate(ns3, cc string, h netrun.Htsim, o netrun.Options) (*netrun.Report, error) {
	switch {
	case (ns3 == "") == (h.Matrix == ""):
		return nil, fail.Usage("network run: name a configuration with --ns3, or a matrix with --htsim")
	case ns3 != "":
		o.CC = cc
		return netrun.NS3(ns3, o)
	case o.Repair != "" || o.TimeoutUs != 0 || o.Retries != 0 || o.Paths != 0 || o.Credits != 0 || len(o.Faults) > 0 || o.Routing != "" || o.WatchUs != 0 || o.MarkAt != "" || o.Quanta != 0 || o.Alpha != 0 || o.Through != 0 || o.CNP != "" || o.Messages != 0:
		return nil, fail.Usage("network run: --repair, --timeout, --retries, --paths, --credits, --routing, --watchdog, --alpha, --pause-quanta, --cut-through, --cnp, --mark-at, --message-rate and --fault are for --ns3")
	case h.Topo == "":
		return nil, fail.Usage("network run: --htsim needs --topo")
	}
	if h.CC = cc; cc == "" {
		h.CC = "nscc"
	}
	return netrun.RunHtsim(h, o)
}

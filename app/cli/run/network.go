package run

import (
	"context"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/packetrun"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NetworkOptions are the flags and arguments of run.
type NetworkOptions struct {
	packetrun.Request
	NetworkOutput
	given *pflag.FlagSet // of a command line; nil: the values alone count
}

// Network is simccl network.
func Network(a *cli.App) *cobra.Command {
	return cli.Long(cli.Group("network", "Simulate networks packet by packet", networkRun(a)),
		`network simulates flows over switches without NCCL, from the input files of ns-3's
RDMA simulators or of htsim: PFC, ECN, congestion control, credits, trimming. What
collectives meet in a network is run --fabric FILE --network packet.`)
}

func networkRun(a *cli.App) *cobra.Command {
	var o NetworkOptions
	c := &cobra.Command{Use: "run", Short: "Run a scenario of a packet simulator",
		Long: `run simulates the flows of a packet simulator's input files, frame by frame, and
prints flow completion times, the deepest queue, pause frames, ECN marks and losses.

--ns3 reads a configuration of the HPCC simulator on ns-3, with the topology and
flow files that it names: PFC, ECN, DCQCN, HPCC, TIMELY, DCTCP, go-back-N, ECMP.
Flow files may have dependency columns: the number of flows that a flow waits for,
then their indices, from 0. The options can replace its congestion control, loss
recovery and routing, and add link faults.

--traffic puts generated flows in place of those: an incast, a permutation, an
alltoall, or flows of a web search or Hadoop cluster at a load. --fabric runs them over
a fabric file of simccl (simccl topo fabric) with the switches and NICs that it describes.

--htsim reads a connection matrix of htsim, and --topo its topology of two or three
tiers: Ultra Ethernet (--cc nscc: trimming, selective acknowledgements, packet
spraying as --lb says) or RoCE with PFC alone (--cc roce).`,
		Example: "  simccl network run --ns3 config.txt\n" +
			"  simccl network run --ns3 config.txt --seed 2 --timing --json\n" +
			"  simccl network run --ns3 config.txt --csv flows.csv --out files --interval 5\n" +
			"  simccl network run --ns3 config.txt --traffic websearch --load 30 --report load.html\n" +
			"  simccl network run --ns3 config.txt --cc swift --routing flowlet --watchdog 200\n" +
			"  simccl network run --htsim perm.cm --topo leafspine.topo --cc nscc --lb reps",
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	o.given = c.Flags()
	flags.Register(c.Flags(), flags.In("Files",
		flags.Of(&o.NS3, "ns3", "", "", "configuration `FILE` of the HPCC simulator on ns-3", "NS3"),
		flags.Of(&o.Fabric, "fabric", "", "",
			"fabric `FILE`, as simccl topo fabric writes it, with --traffic",
			"Fabric"),
		flags.Of(&o.Htsim.Matrix, "htsim", "", "", "connection matrix `FILE` of htsim", "Matrix"),
		flags.Of(&o.Htsim.Topo, "topo", "", "", "topology `FILE` of htsim, with --htsim", "Topo")),
		trafficFlags(&o.Traffic), o.senders(), switchFlags(&o.Request.Options), linkFlags(&o.Request.Options),
		simulationFlags(&o.Request.Options), o.output())
	return c
}

// Run simulates what is named and prints the report.
func (o *NetworkOptions) Run(_ context.Context, a *cli.App) error {
	others, of := []string{"compat", "flowlet"}, "--ns3"
	switch {
	case o.NS3 != "":
		others, of = []string{"topo", "lb", "mtu"}, "--htsim"
	case o.Fabric != "":
		others, of = []string{"topo", "lb", "mtu", "compat", "flowlet"}, "--ns3 or --htsim"
	}
	for _, name := range others {
		if o.given != nil && o.given.Changed(name) {
			return fail.Usage("network run: --%s is for %s", name, of)
		}
	}
	if o.Workers < 1 {
		return fail.Usage("network run: --workers %d: write at least 1", o.Workers)
	}
	o.samples()
	r, err := o.simulate(a)
	if err != nil {
		return a.AsFlags(err)
	}
	if err := o.write(a, r); err != nil {
		return a.AsFlags(err)
	}
	if a.JSON {
		return a.Encode("", false, r)
	}
	return a.PrintText(r.Text())
}

// trafficFlags are the options of generated flows.
func trafficFlags(t *packetrun.Traffic) flags.Group {
	d := packetrun.Defaults()
	return flags.In("Traffic",
		flags.Of(&t.Kind, "traffic", "", "",
			"generated flows, of --fabric or in place of those of --ns3: `WHAT` "+packetrun.Kinds+
				" (each to the first host; random pairs; all pairs; sizes of flows as in a web search and a "+
				"Hadoop "+
				"cluster, at random times)", "Kind"),
		flags.Of(&t.Bytes, "bytes", "", d.Bytes, "`BYTES` of each flow of incast, permutation and alltoall",
			"Bytes"),
		flags.Of(&t.Load, "load", "", d.Load,
			"websearch and hadoop: `PERCENT` of its line that each host is to send",
			"Load"),
		flags.Of(&t.SpanUs, "span", "", d.SpanUs,
			"websearch and hadoop: for how many `US` (microseconds) flows "+
				"start", "SpanUs"))
}

func (o *NetworkOptions) senders() flags.Group {
	p, h := &o.Request.Options, &o.Htsim
	return flags.In("Hosts",
		flags.Of(&p.CC, "cc", "", "",
			"congestion control `NAME`; with --htsim: nscc (default) or roce; with --ns3 and --fabric "+
				"(default the file's): "+packetrun.Presets, "CC"),
		flags.Of(&p.ECN, "ecn", "", "",
			"ECN thresholds `KMIN/KMAX/P`, as 100/400/0.2: the queues in kB where marking begins and "+
				"where all is marked, at the speed of hosts (other links in proportion), and the share "+
				"marked just below; default the file's", "ECN"),
		flags.Of(&h.Balance, "lb", "", "",
			"load balancing `NAME` with --htsim: ecmp, oblivious, reps, bitmap or mixed (default); "+
				"roce has ecmp alone", "Balance"),
		flags.Of(&h.MTU, "mtu", "", 0,
			"`BYTES` of a full frame with --htsim and nscc (default 4150), of its payload with roce "+
				"(default 1000)", "MTU"),
		flags.Of(&p.Repair, "repair", "", "",
			"loss recovery `HOW`: gbn (go-back-N), sr (selective repeat) or trim (selective "+
				"repeat; switches trim frames to their headers instead of PFC)", "Repair"),
		flags.Of(&p.TimeoutUs, "timeout", "", 0, "retransmission timeout in `US` (microseconds); 0: none",
			"TimeoutUs"),
		flags.Of(&p.Retries, "retries", "", 0,
			"timeouts `N` without progress after which a flow fails; 0: never", "Retries"),
		flags.Of(&p.Paths, "paths", "", 0,
			"source ports `N`, and so hashed paths, over which a flow's frames rotate; needs "+
				"--repair sr", "Paths"),
		flags.Of(&p.CNP, "cnp", "", "",
			"CNPs of DCQCN with --compat none, `HOW`: ack (default: a mark on the ACK) or frame "+
				"(frames of their own)", "CNP"),
		flags.Of(&p.Messages, "message-rate", "", 0,
			"most flows that a host starts in a second, in `MILLIONS`; 0: no limit",
			"Messages"))
}

func switchFlags(o *packetrun.Options) flags.Group {
	return flags.In("Switches",
		flags.Of(&o.Routing, "routing", "", "",
			"load balancing `HOW`: ecmp (default), adaptive (each frame to the shortest "+
				"queue; needs --repair sr or trim) or flowlet", "Routing"),
		flags.Of(&o.FlowletUs, "flowlet", "", 16,
			"idle gap in `US` (microseconds) after which a flow chooses its path again, "+
				"with --routing flowlet", "FlowletUs"),
		flags.Of(&o.MarkAt, "mark-at", "", "",
			"ECN marking at `WHERE`: dequeue (default: by the queue that a frame leaves "+
				"behind) or enqueue (by the queue that it finds)", "MarkAt"),
		flags.Of(&o.Alpha, "alpha", "", 0,
			"dynamic PFC threshold: a queue may take `A` times a switch's free buffer, a power "+
				"of two up to 8; 0: the configuration's", "Alpha"),
		flags.Of(&o.Quanta, "pause-quanta", "", 0,
			"pauses expire after `N` quanta of 512 bit times (IEEE 802.1Qbb, up to "+
				"65535), and switches repeat them; 0: pauses do not expire", "Quanta"),
		flags.Of(&o.Through, "cut-through", "", 0,
			"switches forward a frame after its first `BYTES` (128 is usual) where the "+
				"egress port is no faster than the ingress link; 0: store-and-forward", "Through"),
		flags.Of(&o.WatchUs, "watchdog", "", 0,
			"PFC watchdog: drop a switch queue that has been paused for `US` "+
				"(microseconds); 0: none", "WatchUs"))
}

// linkFlags are the options of cables.
func linkFlags(o *packetrun.Options) flags.Group {
	return flags.In("Links",
		flags.Of(&o.Credits, "credits", "", 0,
			"InfiniBand credits instead of PFC, for `BYTES` of buffer behind each link",
			"Credits"),
		flags.Of(&o.Faults, "fault", "", nil,
			"faulty link, as with run --fault: link=A~B:`WHAT`[@FROM-TO] between nodes A and B: down, "+
				"slow=2 "+
				"(half the speed), latency=5 (µs more), loss=0.01, storm (B keeps A paused) or "+
				"flap=20/100; times in µs after "+
				"the first flow start; nic=A:WHAT of the cables of host A; A-B:slow=0.5 (the share that is "+
				"left) is read, too; repeatable",
			"Faults"))
}

// simulationFlags are the options of how it is simulated.
func simulationFlags(o *packetrun.Options) flags.Group {
	return flags.In(flags.Model,
		flags.Of(&o.Compat, "compat", "", "ns3",
			"closeness to ns-3, `MODE` ns3 (its frame sizes and whole nanoseconds), "+
				"ns3:exact (also its order of simultaneous events from the first frame; slower) or none "+
				"(RoCEv2 frames on "+
				"Ethernet, exact times)", "Compat"),
		flags.Of(&o.Seed, "seed", "", 1, "`SEED` of random marks, losses and, with --htsim, paths"),
		flags.Of(&o.Workers, "workers", "", 1, "threads `N`; the result does not depend on them"),
		flags.Of(&o.Timing, "timing", "", false, "print the CPU time of the simulation too"))
}

// simulate runs what is named.
func (o *NetworkOptions) simulate(a *cli.App) (*packetrun.Report, error) {
	r := o.Request
	r.Poll, r.Warn = a.Cancelled, a.Warn
	r.Read = func(name string) ([]byte, error) {
		if o.Fabric != "" {
			return a.Read(name, fabric.MaxBytes)
		}
		return a.ReadAs(name, packetrun.MaxFile, r.Kinds()...)
	}
	return r.Run()
}

package bench

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/real/perftest"
	"github.com/simccl/simccl/real/team"
	"github.com/spf13/cobra"
)

// VerbsOptions are the flags of bench verbs, with perftest's letters.
type VerbsOptions struct {
	perftest.Request
	Device string // or two: of the sender and the receiver
	Port   int    // of the devices; 0: the first that is up
	Gbits  bool   // bandwidths in Gb/s
	Secret cli.Secret
}

func verbs(a *cli.App) *cobra.Command {
	var v VerbsOptions
	c := &cobra.Command{Use: "verbs [HOST] [write|read|send|nccl]...",
		Short: "Measure RDMA as perftest does, and NCCL's own transport pattern beside it",
		Long: `verbs measures bandwidth and latency with the letters and columns of ib_write_bw and
its siblings, and in the same table what NCCL's pattern reaches: nccl waits for a
clear-to-send, keeps 8 messages in flight and notifies the receiver by a write with
immediate. Where write is fast and nccl is not, the cause is neither NIC nor wire; a
line below the table says what it is.

Between two hosts, run it with --serve --listen ADDRESS on one, and with that
address on the other, which prints the table. Both need the same secret: by
SIMCCL_SECRET or --secret-file, else the key of this user's that their home
directory holds. Without --listen only programs of the same host reach the server;
without either it measures between two ports of this machine.

MiB/sec are 2^20 bytes and GB/sec 10^9 bytes a second, as in NCCL's tables. Times of write
and send are half a round trip, of read a whole one, of nccl from the offer of a
receive to its end. The peak is looked for up to 20000 messages and not of nccl.`,
		Example: `  simccl bench verbs -d mlx5_0 -s 65536
  simccl bench verbs write nccl -d mlx5_0,mlx5_1 -a -q 4 --report_gbits
  simccl bench verbs --serve --listen node1 -d mlx5_0  # on node1
  simccl bench verbs node1 -d mlx5_0 -a -b  # on node0`,
		RunE: cli.RunWith(a, &v, &v.Words)}
	c.Flags().SortFlags = false
	v.register(c)
	return c
}

func (v *VerbsOptions) register(c *cobra.Command) {
	clock := false // accepted
	flags.Register(c.Flags(), flags.In("Devices",
		flags.Of(&v.Device, "ib-dev", "d", "",
			"`DEVICE` of this side; without a HOST also DEVICE,DEVICE: sender, receiver "+
				"(default the first and the last)"),
		flags.Of(&v.Port, "ib-port", "i", 0, "`PORT` of the devices (default the first that is up)"),
		flags.Of(&v.GID, "gid-index", "x", -1, "`INDEX` of the RoCE address (default as NCCL chooses)")),
		flags.In("Measurement",
			flags.Of(&v.Size, "size", "s", "65536", "`SIZE` of a message", "Size"),
			flags.Of(&v.Iters, "iters", "n", 1000, "messages of a measurement", "Iters"),
			flags.Of(&v.QPs, "qp", "q", 1, "queue pairs; of bandwidth", "QPs"),
			flags.Of(&v.Depth, "tx-depth", "t", 128,
				"messages in flight per queue pair (bandwidth tests only, not nccl)", "Depth"),
			flags.Of(&v.AllSizes, "all", "a", false, "all sizes from 2 bytes to 8 MiB by powers of 2"),
			flags.Of(&v.Bidirectional, "bidirectional", "b", false, "both directions at once; of bandwidth"),
			flags.Of(&v.Seconds, "duration", "D", 0, "measure for `SECONDS` in place of -n", "Seconds"),
			flags.Of(&v.NoPeak, "noPeak", "N", false, "do not search for the peak"),
			flags.Of(&v.Gbits, "report_gbits", "", false, "bandwidths in Gb/sec"),
			flags.Of(&clock, "CPU-freq", "F", false,
				"accepted; times come from a clock that does not change its speed")),
		flags.In("Connection",
			flags.Of(&v.SL, "sl", "S", -1, "service `LEVEL` (default as NCCL_IB_SL)", "SL"),
			flags.Of(&v.TrafficClass, "tclass", "", -1, "traffic `CLASS` (default as NCCL_IB_TC)",
				"TrafficClass"),
			flags.Of(&v.QPTimeout, "qp-timeout", "u", -1,
				"4.096 us times two to this `EXPONENT`, before a retry (default as "+
					"NCCL_IB_TIMEOUT)", "QPTimeout"),
			flags.Of(&v.Serve, "serve", "", false, "wait for the other side, until it has measured all",
				"Serve"),
			flags.Of(&v.Listen, "listen", "", "127.0.0.1",
				"`ADDRESS` of this host on which --serve listens; 0.0.0.0 or :: for "+
					"all", "Listen"),
			flags.Of(&v.TCP, "port", "p", 18515, "TCP `PORT` by which both sides meet", "TCP")))
	v.Secret.Register(c)
}

// Run measures as the client, or waits as the server.
func (v *VerbsOptions) Run(ctx context.Context, a *cli.App) error {
	p, err := v.Plan()
	if err != nil {
		return a.AsFlags(err)
	}
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	ports, err := perftest.Open(v.Settings(cfg.IB), v.Device, v.Port)
	if err != nil {
		return err
	}
	defer ports.Close()
	if v.Serve {
		return v.wait(ctx, a, ports)
	}
	other := ports.To()
	var remote *perftest.Remote
	if p.Host != "" {
		key, err := v.key(a, p.Host)
		if err != nil {
			return err
		}
		other, remote = p.Host, &perftest.Remote{Addr: p.Host, Key: key}
	}
	table := perftest.Table{Gbits: v.Gbits}
	fmt.Fprint(a.Out, table.Head(&p.Case, ports.From(), other))
	remarks, err := ports.Measure(ctx, p.Tests, p.Sizes, p.Case, remote, func(r *perftest.Row) {
		fmt.Fprint(a.Out, table.Row(r))
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, perftest.Ruler)
	for _, r := range remarks {
		fmt.Fprintln(a.Out, " "+r)
	}
	if remote != nil {
		return remote.End(ctx)
	}
	return nil
}

// key returns the key with which the two sides that meet at an address authenticate each other.
func (v *VerbsOptions) key(a *cli.App, at string) ([]byte, error) {
	s, err := v.Secret.Read(a, team.Loopback(at))
	if err != nil {
		return nil, err
	}
	key := s.Key("bench verbs")
	return key[:], nil
}

// wait serves the client.
func (v *VerbsOptions) wait(ctx context.Context, a *cli.App, ports *perftest.Ports) error {
	key, err := v.key(a, v.Address())
	if err != nil {
		return err
	}
	ln, err := v.Listener()
	if err != nil {
		return a.AsFlags(err)
	}
	defer ln.Close()
	fmt.Fprintf(a.Err, "simccl: %s port %d waits at %s\n", ports.From(), ports.Port(), ln.Addr())
	return ports.Serve(ctx, ln, key, func(c perftest.Case, err error) {
		fmt.Fprintf(a.Err, "simccl: %s of %d bytes: %v\n", c.Op, c.Size, err)
	})
}

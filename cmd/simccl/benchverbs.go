package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/real/ibv"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// verbsFlags are perftest's letters.
type verbsFlags struct {
	device       string
	port, gid    int
	size         string
	iters, qps   int
	all, cpuFreq bool
	gbits, both  bool
	seconds      int
}

// patternName is the row of what NCCL does with verbs.
const patternName = "nccl"

func newBenchVerbs(a *app) *cobra.Command {
	var v verbsFlags
	c := &cobra.Command{Use: "verbs [write|read|send|nccl]...", Short: "Measure RDMA as perftest does, beside what NCCL makes of it",
		Long: `verbs measures bandwidth and latency between two RDMA ports of this machine, with
the letters of ib_write_bw and its siblings, and in the same table what NCCL's
pattern reaches: nccl waits for a clear-to-send, keeps 8 messages under way and
tells the receiver by a write with immediate. Where write is fast and nccl is not,
the cause is neither NIC nor wire.

MiB/s are 2^20 bytes (perftest calls them MB/sec), GB/s are 10^9 bytes as in NCCL's
tables, Gb/s are 10^9 bits. Times of write and send are half a round trip, of read a
whole one, of nccl from the offer of a receive to its end.`,
		Example: `  simccl bench verbs -d mlx5_0 -s 65536
  simccl bench verbs write nccl -d mlx5_0,mlx5_1 -a -q 4 --report_gbits`,
		RunE: func(cmd *cobra.Command, args []string) error { return v.main(cmd.Context(), a, args) }}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&v.device, "ib-dev", "d", "", "`DEVICE` that sends, or DEVICE,DEVICE with the one that receives (default the first and the last)")
	f.IntVarP(&v.port, "ib-port", "i", 0, "`PORT` of the devices (default the first that is up)")
	f.IntVarP(&v.gid, "gid-index", "x", -1, "`INDEX` of the RoCE address (default as NCCL chooses)")
	f.StringVarP(&v.size, "size", "s", "65536", "`SIZE` of a message")
	f.IntVarP(&v.iters, "iters", "n", 1000, "messages of a measurement")
	f.IntVarP(&v.qps, "qp", "q", 1, "queue pairs")
	f.BoolVarP(&v.all, "all", "a", false, "all sizes from 2 bytes to 8 MiB by powers of 2")
	f.BoolVarP(&v.cpuFreq, "cpu-freq", "F", false, "accepted; times come from a clock that does not change its speed")
	f.BoolVar(&v.gbits, "report_gbits", false, "peak in Gb/s")
	f.IntVarP(&v.seconds, "duration", "D", 0, "measure for `SECONDS` in place of -n")
	f.BoolVarP(&v.both, "bidirectional", "b", false, "both directions at once")
	return c
}

func (v *verbsFlags) main(ctx context.Context, a *app, tests []string) error {
	known := []string{"write", "read", "send", patternName}
	if len(tests) == 0 {
		tests = known
	}
	for _, t := range tests {
		if !slices.Contains(known, t) {
			return usage("bench verbs %s: write some of %s", t, strings.Join(known, ", "))
		}
	}
	if v.iters < 5 || v.qps < 1 || v.qps > 128 || v.seconds < 0 {
		return usage("-n %d -q %d -D %d: 5 messages or more, 1 to 128 queue pairs, no time below 0", v.iters, v.qps, v.seconds)
	}
	sizes, err := v.sizes()
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	set := cfg.IB
	if v.gid >= 0 {
		set.GIDIndex = units.Some(v.gid)
	}
	set.QPs = units.Some(v.qps)
	n, err := ibv.NewNet(set)
	if err != nil {
		return err
	}
	defer n.Close()
	devs, err := n.Devices()
	if err != nil {
		return err
	}
	from, to, err := v.pick(devs)
	if err != nil {
		return err
	}
	v.head(a.out, devs[from], devs[to])
	for _, size := range sizes {
		for _, t := range tests {
			c := ibv.PerfConfig{Op: t, From: from, To: to, Size: size, Iters: v.iters, Duration: time.Duration(v.seconds) * time.Second,
				QPs: v.qps, Bidirectional: v.both}
			if err := v.row(ctx, a.out, n, c); err != nil {
				return fmt.Errorf("%s of %d bytes: %w", t, size, err)
			}
		}
	}
	return nil
}

func (v *verbsFlags) sizes() ([]int, error) {
	if !v.all {
		n, err := units.ParseBytes(v.size)
		if err != nil {
			return nil, usage("-s: %v", err)
		}
		if n < 1 || n > 1<<30 {
			return nil, usage("-s %s: from 1 byte to 1 GiB", v.size)
		}
		return []int{int(n)}, nil
	}
	var out []int
	for n := 2; n <= 8<<20; n *= 2 {
		out = append(out, n)
	}
	return out, nil
}

// pick finds the two ends among the ports that are up.
func (v *verbsFlags) pick(devs []transport.Properties) (from, to int, err error) {
	find := func(name string, def int) (int, error) {
		var have []string
		for i, d := range devs {
			if (name == "" && v.port == 0 && i == def) || (name == d.Name || name == "") && (v.port == 0 || v.port == d.Port) {
				return i, nil
			}
			have = append(have, fmt.Sprintf("%s:%d", d.Name, d.Port))
		}
		return 0, usage("-d %s -i %d: no such port is up; there are %s", name, v.port, strings.Join(have, ", "))
	}
	if v.device == "" && v.port == 0 {
		return 0, len(devs) - 1, nil
	}
	a, b, two := strings.Cut(v.device, ",")
	if from, err = find(a, 0); err != nil || !two {
		return from, from, err
	}
	to, err = find(b, len(devs)-1)
	return from, to, err
}

func (v *verbsFlags) head(w io.Writer, from, to transport.Properties) {
	dir := "one way"
	if v.both {
		dir = "both ways"
	}
	line := strings.Repeat("-", 150)
	fmt.Fprintf(w, "%s\n                    RDMA and NCCL's pattern, %s\n Device         : %s -> %s\n Number of qps  : %d\n TX depth       : 128 (nccl: 8)\n%s\n",
		line, dir, from.Name, to.Name, v.qps, line)
	peak := "BW peak[MiB/s]"
	if v.gbits {
		peak = "BW peak[Gb/s]"
	}
	fmt.Fprintf(w, " %-6s %9s %12s %15s %18s %13s %13s %13s %11s %11s %15s %11s %13s %9s %10s\n", "test", "#bytes", "#iterations", peak, "BW average[MiB/s]",
		"average[GB/s]", "average[Gb/s]", "MsgRate[Mpps]", "t_min[us]", "t_max[us]", "t_typical[us]", "t_avg[us]", "t_stdev[us]", "99%[us]", "99.9%[us]")
}

// row measures bandwidth, then latency.
func (v *verbsFlags) row(ctx context.Context, w io.Writer, n *ibv.Net, c ibv.PerfConfig) error {
	measure := n.RunPerf
	if c.Op == patternName {
		measure = n.RunPattern
	}
	bw, err := measure(ctx, c)
	if err != nil {
		return err
	}
	c.Latency = true
	lat, err := measure(ctx, c)
	if err != nil {
		return err
	}
	peak := bw.Peak / (1 << 20)
	if v.gbits {
		peak = bw.Peak * 8e-9
	}
	mean, stdev := lat.Mean()
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	fmt.Fprintf(w, " %-6s %9d %12d %15.2f %18.2f %13.4f %13.4f %13.6f %11.2f %11.2f %15.2f %11.2f %13.2f %9.2f %10.2f\n", c.Op, c.Size, bw.Iters,
		peak, bw.Average/(1<<20), bw.Average/1e9, bw.Average*8e-9, bw.Rate/1e6, us(lat.Times[0]), us(lat.Times[len(lat.Times)-1]),
		us(lat.Typical()), us(mean), us(stdev), us(lat.Percentile(99)), us(lat.Percentile(99.9)))
	return nil
}

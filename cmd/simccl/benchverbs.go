package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/real/perftest"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// verbsFlags are perftest's letters.
type verbsFlags struct {
	device          string
	port, gid       int
	size            string
	iters, qps      int
	depth           int
	sl, timeout     int
	tcp             int
	all, cpuFreq    bool
	gbits, both     bool
	noPeak, serve   bool
	seconds, tclass int
	listen          string
	secret          secretFlags
}

func newBenchVerbs(a *app) *cobra.Command {
	var v verbsFlags
	c := &cobra.Command{Use: "verbs [HOST] [write|read|send|nccl]...", Short: "Measure RDMA as perftest does, and NCCL's own transport pattern beside it",
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
		RunE: func(cmd *cobra.Command, args []string) error { return v.main(cmd.Context(), a, args) }}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&v.device, "ib-dev", "d", "", "`DEVICE` of this side; without a HOST also DEVICE,DEVICE: sender, receiver (default the first and the last)")
	f.IntVarP(&v.port, "ib-port", "i", 0, "`PORT` of the devices (default the first that is up)")
	f.IntVarP(&v.gid, "gid-index", "x", -1, "`INDEX` of the RoCE address (default as NCCL chooses)")
	f.StringVarP(&v.size, "size", "s", "65536", "`SIZE` of a message")
	f.IntVarP(&v.iters, "iters", "n", 1000, "messages of a measurement")
	f.IntVarP(&v.qps, "qp", "q", 1, "queue pairs; of bandwidth")
	f.IntVarP(&v.depth, "tx-depth", "t", 128, "messages in flight per queue pair (bandwidth tests only, not nccl)")
	f.BoolVarP(&v.all, "all", "a", false, "all sizes from 2 bytes to 8 MiB by powers of 2")
	f.BoolVarP(&v.both, "bidirectional", "b", false, "both directions at once; of bandwidth")
	f.IntVarP(&v.seconds, "duration", "D", 0, "measure for `SECONDS` in place of -n")
	f.BoolVarP(&v.noPeak, "noPeak", "N", false, "do not search for the peak")
	f.IntVarP(&v.sl, "sl", "S", -1, "service `LEVEL` (default as NCCL_IB_SL)")
	f.IntVar(&v.tclass, "tclass", -1, "traffic `CLASS` (default as NCCL_IB_TC)")
	f.IntVarP(&v.timeout, "qp-timeout", "u", -1, "4.096 us times two to this `EXPONENT`, before a retry (default as NCCL_IB_TIMEOUT)")
	f.BoolVar(&v.gbits, "report_gbits", false, "bandwidths in Gb/sec")
	f.BoolVarP(&v.cpuFreq, "CPU-freq", "F", false, "accepted; times come from a clock that does not change its speed")
	f.BoolVar(&v.serve, "serve", false, "wait for the other side, until it has measured all")
	f.StringVar(&v.listen, "listen", "127.0.0.1", "`ADDRESS` of this host at which --serve waits; 0.0.0.0 or :: for all")
	v.secret.register(f)
	f.IntVarP(&v.tcp, "port", "p", 18515, "TCP `PORT` by which both sides meet")
	return c
}

func (v *verbsFlags) main(ctx context.Context, a *app, args []string) error {
	host, tests, err := v.words(args)
	if err != nil {
		return err
	}
	sizes, err := v.sizes()
	if err != nil {
		return err
	}
	set, err := v.settings(a)
	if err != nil {
		return err
	}
	ports, err := perftest.Open(set, v.device, v.port)
	if err != nil {
		return err
	}
	defer ports.Close()
	var key []byte
	if v.serve || host != "" {
		if key, err = v.key(a, host); err != nil {
			return err
		}
	}
	if v.serve {
		return v.wait(ctx, a, ports, key)
	}
	other := ports.To()
	var remote *perftest.Remote
	if host != "" {
		other, remote = host, &perftest.Remote{Addr: host, Key: key}
	}
	like := perftest.Case{Iters: v.iters, Duration: time.Duration(v.seconds) * time.Second,
		QPs: v.qps, TxDepth: v.depth, Bidirectional: v.both, NoPeak: v.noPeak}
	table := perftest.Table{Gbits: v.gbits}
	fmt.Fprint(a.out, table.Head(&like, ports.From(), other))
	remarks, err := ports.Measure(ctx, tests, sizes, like, remote, func(r *perftest.Row) { fmt.Fprint(a.out, table.Row(r)) })
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, perftest.Ruler)
	for _, r := range remarks {
		fmt.Fprintln(a.out, " "+r)
	}
	if remote != nil {
		return remote.End(ctx)
	}
	return nil
}

// words reads the arguments: tests, and what is none is the other side's
// address.
func (v *verbsFlags) words(args []string) (host string, tests []string, err error) {
	known := perftest.Tests()
	for _, w := range args {
		switch {
		case slices.Contains(known, w):
			tests = append(tests, w)
		case host != "" || v.serve:
			return "", nil, usage("bench verbs %s: write some of %s, and one HOST where the other side has --serve", w, strings.Join(known, ", "))
		default:
			host = w
		}
	}
	if len(tests) == 0 {
		tests = known
	}
	switch {
	case v.iters < 5 || v.qps < 1 || v.qps > 128 || v.seconds < 0 || v.depth < 1 || v.depth > 512:
		return "", nil, usage("-n %d -q %d -D %d -t %d: 5 messages or more, 1 to 128 queue pairs, no time below 0, 1 to 512 in flight", v.iters, v.qps, v.seconds, v.depth)
	case v.sl > 15 || v.tclass > 255 || v.timeout > 31 || v.tcp < 1 || v.tcp > 65535:
		return "", nil, usage("-S %d --tclass %d -u %d -p %d: levels go to 15, classes to 255, exponents to 31, ports from 1 to 65535", v.sl, v.tclass, v.timeout, v.tcp)
	}
	if host != "" {
		if _, _, e := net.SplitHostPort(host); e != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(v.tcp))
		}
	}
	return host, tests, nil
}

// settings are those of the environment, but for what the letters say.
func (v *verbsFlags) settings(a *app) (set netcfg.IB, err error) {
	cfg, err := a.config()
	if err != nil {
		return set, err
	}
	set = cfg.IB
	if v.gid >= 0 {
		set.GIDIndex = units.Some(v.gid)
	}
	for _, s := range []struct {
		given int
		to    *uint8
	}{{v.sl, &set.Service.SL}, {v.tclass, &set.Service.TC}, {v.timeout, &set.Service.Timeout}} {
		if s.given >= 0 {
			*s.to = uint8(s.given)
		}
	}
	return set, nil
}

// key is what the two sides share.
func (v *verbsFlags) key(a *app, host string) ([]byte, error) {
	at := host
	if v.serve {
		at = net.JoinHostPort(v.listen, strconv.Itoa(v.tcp))
	}
	s, err := v.secret.read(a, team.Loopback(at))
	if err != nil {
		return nil, err
	}
	key := s.Key("bench verbs")
	return key[:], nil
}

// wait serves the other side.
func (v *verbsFlags) wait(ctx context.Context, a *app, ports *perftest.Ports, key []byte) error {
	l, err := v.listener()
	if err != nil {
		return err
	}
	ln := l.(*net.TCPListener)
	defer ln.Close()
	fmt.Fprintf(a.err, "simccl: %s port %d waits at %s\n", ports.From(), ports.Port(), ln.Addr())
	return ports.Serve(ctx, ln, key, func(c perftest.Case, err error) {
		fmt.Fprintf(a.err, "simccl: %s of %d bytes: %v\n", c.Op, c.Size, err)
	})
}

// listener waits where --listen says: on this host alone by default.
func (v *verbsFlags) listener() (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(v.listen, strconv.Itoa(v.tcp)))
	if err != nil {
		return nil, usage("--listen %s -p %d: %v", v.listen, v.tcp, err)
	}
	return l, nil
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
	return perftest.AllSizes(), nil
}

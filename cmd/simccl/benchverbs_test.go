package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/ibv"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/topo"
)

// TestVerbsColumns: head and rows are perftest's, so that its readers' eyes and
// scripts find their numbers.
func TestVerbsColumns(t *testing.T) {
	var b strings.Builder
	v := verbsFlags{qps: 2, depth: 128}
	v.head(&b, "mlx5_0", "node1:18515")
	measure := func(c ibv.PerfConfig) (*ibv.Perf, error) {
		if c.Latency {
			return &ibv.Perf{Iters: 4, Times: []time.Duration{1000, 2000, 3000, 4000}}, nil
		}
		return &ibv.Perf{Iters: c.Iters, Peak: 3 << 20, Average: 2 << 20, Rate: 2e6}, nil
	}
	if _, err := v.row(&b, ibv.PerfConfig{Op: "write", Size: 65536, Iters: 1000}, measure); err != nil {
		t.Fatal(err)
	}
	v.gbits = true
	if _, err := v.row(&b, ibv.PerfConfig{Op: "read", Size: 2, Iters: 5}, measure); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	head := lines[len(lines)-3]
	// As ib_write_bw and ib_write_lat of perftest 24 print them.
	for _, want := range []string{
		" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]",
		"    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]",
	} {
		if !strings.Contains(head, want) {
			t.Errorf("the head %q lacks %q", head, want)
		}
	}
	for i, want := range [][]string{
		{"write", "65536", "1000", "3.00", "2.00", "2.000000", "0.0021", "1.00", "4.00", "3.00", "2.50", "1.12", "4.00", "4.00"},
		{"read", "2", "5", "0.03", "0.02", "2.000000", "0.0021", "1.00", "4.00", "3.00", "2.50", "1.12", "4.00", "4.00"},
	} {
		if got := strings.Fields(lines[len(lines)-2+i]); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("row %d is %q, want %q", i, got, want)
		}
	}
}

// TestVerbsRemarks tells a wait for clear-to-sends from a busy host.
func TestVerbsRemarks(t *testing.T) {
	row := func(gbps float64, each time.Duration) verbsRow {
		return verbsRow{&ibv.Perf{Average: gbps * 1e9}, &ibv.Perf{Times: []time.Duration{each}}}
	}
	for _, c := range []struct {
		nccl verbsRow
		want string
	}{
		{row(47, 8*time.Microsecond), "65536 bytes: nccl reaches 98 % of write"},
		{row(24, 20*time.Microsecond), "50 % of write; 8 messages of 20.00 usec under way allow 26.2144 GB/sec, so the round trip"},
		{row(6, 8*time.Microsecond), "12 % of write; 8 messages of 8.00 usec under way allow 65.5360 GB/sec: what is missing"},
	} {
		got := remark(65536, map[string]verbsRow{"write": row(48, time.Microsecond), ibv.OpNCCL: c.nccl})
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := remark(65536, map[string]verbsRow{"write": row(48, time.Microsecond)}); got != nil {
		t.Errorf("without nccl: %q", got)
	}
}

// TestVerbsWords: what is no test is the other side.
func TestVerbsWords(t *testing.T) {
	for _, c := range []struct {
		args  string
		serve bool
		host  string
		tests string
		wrong bool
	}{
		{"", false, "", "write read send nccl", false}, {"nccl write", false, "", "nccl write", false},
		{"node1", false, "node1:18515", "write read send nccl", false}, {"read 10.0.0.1:99 nccl", false, "10.0.0.1:99", "read nccl", false},
		{"fe80::1", false, "[fe80::1]:18515", "write read send nccl", false}, {"", true, "", "write read send nccl", false},
		{"node1 node2", false, "", "", true}, {"node1", true, "", "", true},
	} {
		v := verbsFlags{iters: 5, qps: 1, depth: 1, tcp: 18515, serve: c.serve}
		host, tests, err := v.words(strings.Fields(c.args))
		if (err != nil) != c.wrong || host != c.host || strings.Join(tests, " ") != c.tests {
			t.Errorf("%q: host %q, tests %q, %v", c.args, host, tests, err)
		}
	}
}

// ports is a net that only has names.
type ports struct {
	transport.Net
	names []string
}

func (p ports) Devices() (out []transport.Properties, err error) {
	for _, n := range p.names {
		out = append(out, transport.Properties{Name: n})
	}
	return out, nil
}

// TestConnectionsUseThePlansNICs: on the topology's own machine every end of a
// ring between two nodes goes by the NIC that the graph has there, and all
// rails carry.
func TestConnectionsUseThePlansNICs(t *testing.T) {
	m, err := (&machineFlags{topo: "../../testdata/topos/dgx-h100.xml", nodes: 2, multicast: "auto"}).load(&app{noEnv: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	s := m.cluster.Host(0).Systems[0]
	for _, id := range s.Of(topo.NET) {
		names = append(names, s.Nodes[id].Net.Name)
	}
	slices.Reverse(names) // not in the topology's order
	device, err := m.assignNICs(ports{names: names})
	if err != nil {
		t.Fatal(err)
	}
	p, err := build.Plan(m.comm.Comm, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 20, Algo: coll.Ring, Proto: coll.Simple, Channels: m.comm.NChannels, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	used := map[int]bool{}
	for i := range int32(p.NumConns()) {
		r := p.Conn(i).Route
		if r.Transport != connect.NET {
			continue
		}
		for _, end := range [][2]int32{{p.Conn(i).Src, r.SrcNet}, {p.Conn(i).Dst, r.DstNet}} {
			want := s.Nodes[s.Of(topo.NET)[end[1]]].Net.Name
			d := device(end[0], end[1])
			if used[d] = true; names[d] != want {
				t.Errorf("channel %d of rank %d goes by %s, its graph has %s", p.Conn(i).Channel, end[0], names[d], want)
			}
		}
	}
	if len(used) != len(names) {
		t.Errorf("%d of %d NICs carry", len(used), len(names))
	}
	// On another machine, two nodes of one place do not share a port.
	if device, err = m.assignNICs(ports{names: []string{"rxe0", "rxe1"}}); err != nil || device(0, 0) == device(8, 0) {
		t.Errorf("both nodes have port %d: %v", device(0, 0), err)
	}
}

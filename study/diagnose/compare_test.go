package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/calibrate"
)

// published is a table of all_reduce on 2 nodes of 2 GPUs, of one size, as JSON.
func published(name string, us float64, members string) File {
	return File{
		name, fmt.Appendf(nil,
			`{"name": "own", "collective": "all_reduce", "system": {"gpu": "H100 80GB HBM3",
		"nodes": 2, "gpus_per_node": 2}, "rows": [{"bytes": 67108864, "time_us": %g}]%s}`, us, members)}
}

// TestTablesAreCompared: of tables of one operation, what the slower ones have and the faster ones have not
// is the cause, whatever curve fits: a release, a setting, a word that is evidence. Tables that are about as
// fast say nothing.
func TestTablesAreCompared(t *testing.T) {
	for _, c := range []struct{ slow, fast, kind string }{
		{`, "nccl_version": "2.27.3"`, `, "nccl_version": "2.22.3"`, "release"},
		{`, "env": {"NCCL_PXN_DISABLE": "0"}`, `, "env": {"NCCL_PXN_DISABLE": "1"}`, "pxn"},
		{``, `, "env": {"NCCL_IB_QPS_PER_CONNECTION": "4"}`, "qp"},
		{`, "env": {"NCCL_DEBUG": "INFO"}`, `, "env": {"NCCL_SOCKET_IFNAME": "eth0"}`, ""},
	} {
		for _, ratio := range []float64{3, 1.1} {
			m, err := read([]File{published("a.json", 1000*ratio, c.slow), published("b.json", 1000, c.fast)})
			if err != nil {
				t.Fatal(err)
			}
			q := &work{m: m}
			q.compared()
			got := ""
			for _, f := range m.facts {
				got += f.kind
			}
			want := c.kind
			if ratio < apart1 {
				want = ""
			}
			if got != want {
				t.Errorf("%s against %s, %g times as slow: %q, want %q", c.slow, c.fast, ratio, got, want)
			}
		}
	}
	r := diagnosed(t, scenario.Spec{}, published("other NUMA.json", 4000, ""),
		published("same NUMA.json", 1500, ""))
	if len(r.Suspects) == 0 || r.Suspects[0].Kind != "numa" {
		t.Errorf("the word of the slower table is not first:\n%s", r.Text())
	}
}

// TestHostOfSlowTablesIsNamed: of tables on pairs of hosts the one that all slow ones have, and no fast one.
func TestHostOfSlowTablesIsNamed(t *testing.T) {
	q := &work{m: new(material)}
	for pair, us := range map[string]float64{"a b": 100, "c d": 105, "a x": 190, "d x": 180} {
		f := strings.Fields(pair)
		tb := &table{run: &calibrate.Run{Ranks: 2, Nodes: 2}, rows: []row{{bytes: large, us: us}},
			hosts: map[string]bool{f[0]: true,
				f[1]: true}}
		tb.run.File = pair
		q.m.tables = append(q.m.tables, tb)
	}
	q.compared()
	if len(q.m.facts) != 1 || q.m.facts[0].kind != "slow-node" ||
		!strings.Contains(q.m.facts[0].text, "every table with host x ") {
		t.Errorf("%+v", q.m.facts)
	}
}

// TestPerftestIsRead: tables of ib_write_bw in either unit, and what people say of one; NICs that have their
// rate by themselves are unlikelier to be slow, between GPUs also ACS, PCIe and GPUDirect.
func TestPerftestIsRead(t *testing.T) {
	const head = " #bytes     #iterations    BW peak[%s/sec]    BW average[%s/sec]   MsgRate[Mpps]\n"
	for _, c := range []struct {
		text string
		gbit float64
		kind string
		sign float64
	}{
		{fmt.Sprintf(head, "Gb", "Gb") +
			" 65536      5000             392.10             391.44       0.374566\n", 391.44,
			"nic-slow", -1},
		{fmt.Sprintf(head, "MB", "MB") +
			" 65536      5000             48800.1            48750.0        0.78\n", 390,
			"link-slow", -1},
		{"ib_write_bw is about 380 Gb/s, and yet", 380, "slow-node", -1},
		{"ib_write_bw --use_cuda=0 gives 47.5 GB/s", 380, "acs", -1},
		{"ib_send_bw: 120 Gbps", 120, "nic-slow", 1},
	} {
		text := strings.ReplaceAll(c.text, "--use_cuda=0", "--use_cuda")
		w := wiresOf("f", []byte(text))
		if w == nil || w.gbit < 0.999*c.gbit || w.gbit > 1.001*c.gbit {
			t.Errorf("%q: %+v", text, w)
			continue
		}
		q := &work{Request: &Request{Spec: small(), Options: options()}, rep: &Report{}}
		var err error
		if q.m, err = read([]File{published("t.json", 1000, ""), {"f", []byte(text)}}); err != nil {
			t.Fatal(err)
		}
		q.given = givenBy(&q.Spec)
		b, err := q.benchOf(q.m.tables[0])
		if err != nil {
			t.Fatal(err)
		}
		q.benches = []*bench{b}
		q.wired()
		if got := q.weight(c.kind); got*c.sign <= 0 {
			t.Errorf("%q: %s weighs %g", text, c.kind, got)
		}
	}
	if w := wiresOf("f", []byte("65536 5000 392.10 391.44 0.37\n")); w != nil {
		t.Errorf("numbers without perftest's head: %+v", w)
	}
}

// TestFileThatIsSureOutranksAFit: a line that is the cause itself comes first, though the curve is
// another's, and where no simulation can show it; NCCL's lines about pairs that are far apart are none.
func TestFileThatIsSureOutranksAFit(t *testing.T) {
	s := small()
	s.Network.Faults = []string{"nic=node0/0:slow=3.5"}
	table := measured(t, s, 0.02)
	for _, x := range golden.Few([]struct{ text, want string }{
		{"n0:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "no-gpudirect"},
		{"RoCE, without adaptive routing", "routing"},
		{"n0:1:1 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 7 (distance 9 > 4)\n" +
			"n0:1:1 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 4)", "nic-slow"},
	}, 3) {
		r := diagnosed(t, small(), table, File{"said.txt", []byte(x.text + "\n")})
		if len(r.Suspects) == 0 || r.Suspects[0].Kind != x.want {
			t.Errorf("%q: not first: %s\n%s", x.text, x.want, r.Text())
		}
	}
}

// TestWhatDistinguishesSuspectsIsAskedFor: an input for each of the first suspects that no file names, with
// the kinds that it distinguishes; nothing where there is no suspect.
func TestWhatDistinguishesSuspectsIsAskedFor(t *testing.T) {
	q := &work{m: &material{facts: []fact{{"mtu", "said", sure}}}, rep: &Report{Suspects: []Suspect{
		{Kind: "mtu", Rank: 1}, {Kind: "acs", Rank: 2}, {Kind: "congestion", Rank: 2},
		{Kind: "pcie", Rank: 3}, {Kind: "late-rank", Rank: 3}, {Kind: "numa", Rank: 4}}}}
	got := strings.Join(q.asks(), "\n")
	if n := len(q.asks()); n != 3 || !strings.Contains(got, "distinguishes late-rank") {
		t.Errorf("%d inputs are asked for, want those of acs with pcie, congestion, late-rank: %s", n, got)
	}
	if !strings.Contains(got, "lspci -vv") || !strings.Contains(got, "distinguishes acs, pcie") ||
		!strings.Contains(got, "distinguishes congestion") || strings.Contains(got, "numa") ||
		strings.Contains(got, "ibv_devinfo") {
		t.Errorf("asked for: %s", got)
	}
	if q.rep.Suspects = nil; len(q.asks()) != 0 {
		t.Error("without a suspect something is asked for")
	}
}

// TestDomainThatIsNotUsed: times of two nodes of an NVLink domain that are those of their NICs have that as
// the first suspect, and what else is slow is what the NICs lack.
func TestDomainThatIsNotUsed(t *testing.T) {
	table := func(us float64) File {
		return File{"t.json",
			fmt.Appendf(nil, `{"name": "own", "collective": "all_reduce", "system": {"gpu": "GB200",
			"nodes": 2, "gpus_per_node": 1}, "rows": [{"bytes": 1073741824, "time_us": %g}]}`, us)}
	}
	r := diagnosed(t, scenario.Spec{}, table(43000))
	if len(r.Suspects) < 2 || r.Suspects[0].Kind != "wrong-transport" || r.Suspects[1].Kind == "shm" {
		t.Errorf("times of half a NIC:\n%s", r.Text())
	}
	r = diagnosed(t, scenario.Spec{}, table(r.Sizes[0].Expected[1]*1.05))
	if r.Verdict != AsExpected || len(r.Suspects) != 0 {
		t.Errorf("times of the domain:\n%s", r.Text())
	}
}

// TestFactorIsFoundBehindWhatHidesIt: a NIC of half its rate is not felt where a connection has no more than
// that; the factor that the times show is found beyond.
func TestFactorIsFoundBehindWhatHidesIt(t *testing.T) {
	s := scenario.Spec{Machine: scenario.Machine{GPUs: 1, Nodes: []scenario.Nodes{
		{Topo: "dgx-h100", Count: 2}}}}
	slow := s.Clone()
	slow.Network.Faults = []string{"nic=node0/0:slow=3.9"}
	slow.Workload = scenario.Workload{Op: "sendrecv", Sizes: []string{"16M", "64M"}}
	r := made(t, slow, s, options(), 1)
	for _, s := range r.Suspects {
		if s.Kind == "nic-slow" && s.Rank == 1 && strings.Contains(s.What, "1/3.9") {
			return
		}
	}
	t.Errorf("no NIC of 1/3.9:\n%s", r.Text())
}

// FuzzText: no text makes what looks for evidence, bandwidths of perftest and hosts fail, and what is found
// has its place.
func FuzzText(f *testing.F) {
	f.Add([]byte("ib_write_bw about 180 Gb/s, ACS enabled, other NUMA\n"))
	f.Add([]byte(" #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n" +
		" 65536 5000 1e999 1 1\n"))
	f.Add([]byte("#  Rank  0 Group  0 Pid 1 on n0 device 0\n\tACSCtl: SrcValid+\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, x := range factsOf("f", text) {
			if !strings.HasPrefix(x.text, "f:") || x.weight <= 0 {
				t.Errorf("%+v", x)
			}
		}
		if w := wiresOf("f", text); w != nil && !(w.gbit >= 0) {
			t.Errorf("%+v", w)
		}
		for h := range hostsOf(text) { //lint:sorted each by itself
			if h == "" {
				t.Error("a host without a name")
			}
		}
	})
}

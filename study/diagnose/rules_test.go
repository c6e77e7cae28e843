package diagnose

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/workload/flight"
)

// TestReportSaysWhatPartsFromWhat: the report for people has the verdict and from which size on, a table of
// sizes with the ratio and what is not as expected, suspects with evidence, proof and remedy, those of one
// curve under one number, and lists of what is known besides.
func TestReportSaysWhatPartsFromWhat(t *testing.T) {
	from := int64(1 << 20)
	r := &Report{Verdict: Slower, From: &from, Shape: "plateau", Machine: "2 dgx-h100",
		Sizes: []Size{
			{Bytes: 8, Measured: 20, Expected: [3]float64{15, 19, 25}, Verdict: AsExpected, Table: "a"},
			{Bytes: 1 << 20, Measured: 300, Expected: [3]float64{90, 100, 130}, Verdict: Slower, Table: "a"},
			{Bytes: 1 << 20, Measured: 50, Expected: [3]float64{90, 100, 130}, Verdict: Faster, Table: "b"}},
		Suspects: []Suspect{
			{Kind: "nic-slow", What: "one NIC", Rank: 1, Explains: 3, Evidence: []string{"fit", "log"},
				Prove: "p1", Remedy: "r1"},
			{Kind: "acs", What: "a switch", Rank: 1, Explains: 3, Evidence: []string{"fit", "lspci"},
				Prove: "p2", Remedy: "r2"},
			{Kind: "qp", What: "one", Rank: 3, Explains: 1, Prove: "p3", Remedy: "r3"}},
		Stuck: []string{"s"}, Missing: []string{"m"}, Notes: []string{"n"}}
	want := `Slower; the times part from the expected ones at 1048576 B (plateau)
Machine: 2 dgx-h100

    bytes  measured us  expected us  from   to  ratio
        a                                            
        8           20           19    15   25   1.05   
  1048576          300          100    90  130   3.00 slower
        b                                            
  1048576           50          100    90  130   0.50 faster

1. nic-slow: one NIC
   explains a factor of 3.00
   evidence: fit
   evidence: log
   prove: p1
   remedy: r1

1. or, by the same curve, acs: a switch
   evidence: lspci
   prove: p2
   remedy: r2

3. qp: one
   prove: p3
   remedy: r3

Why it hangs or failed:
- s

Missing, what would decide first:
- m

Notes:
- n
`
	plain := func(s string) string { // without the blanks that end a line of the table
		lines := strings.Split(s, "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		return strings.Join(lines, "\n")
	}
	if got := plain(r.Text()); got != plain(want) {
		t.Errorf("%s", got)
	}
	r.Suspects, r.Stuck, r.Missing, r.Notes = nil, nil, nil, nil
	for untried, want := range map[bool]bool{false: true, true: false} {
		r.untried = untried
		if got := strings.HasSuffix(r.Text(), "\nNo suspect explains the times.\n"); got != want {
			t.Errorf("untried %t: %s", untried, r.Text())
		}
	}
	if r.Verdict = AsExpected; strings.Contains(r.Text(), "No suspect") {
		t.Error(r.Text())
	}
}

// TestSampleHasEndsAndTheFarthestSize: of a long table as many sizes are simulated as sampled says, spread
// over it, the first and the last that counts and the one that is farthest off among them; sizes of a flat
// plateau count once.
func TestSampleHasEndsAndTheFarthestSize(t *testing.T) {
	long := func(n int, every func(i int) float64) *hunt {
		h := &hunt{b: &bench{table: &table{}}}
		for i := range n {
			h.b.table.rows = append(h.b.table.rows, row{bytes: 8 << i})
			h.every = append(h.every, every(i))
		}
		return h
	}
	h := long(20, func(i int) float64 { return map[bool]float64{true: -1, false: 0.1}[i == 7] })
	got := h.sample()
	if len(got) < sampled || len(got) > sampled+1 || got[0] != 0 || got[len(got)-1] != 19 ||
		!slices.Contains(got, 7) || !slices.IsSorted(got) {
		t.Errorf("of 20 sizes %v", got)
	}
	if got = long(sampled, func(int) float64 { return 0 }).sample(); len(got) != sampled {
		t.Errorf("of %d sizes %v", sampled, got)
	}
	// 8 B to 4 GiB: from 256 MiB on nothing changes, but at the last size.
	flat := long(30, func(int) float64 { return 0.2 })
	if got = flat.sample(); got[len(got)-1] != 25 {
		t.Errorf("of a flat plateau %v", got)
	}
	if flat.every[29] = 0.3; flat.sample()[len(flat.sample())-1] != 29 {
		t.Errorf("of a plateau that ends slower %v", flat.sample())
	}
}

// TestFaultsOfANetwork: one slow cable is the first between switches, oversubscription is of all of them, and
// cables of hosts keep their rate; routes become static, or hashed by the draw's seed.
func TestFaultsOfANetwork(t *testing.T) {
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 4, Nets: 2, PerLeaf: 2, Gbit: 400,
		Oversub: 1, Routing: fabric.Adaptive})
	if err != nil {
		t.Fatal(err)
	}
	rates := func(n *fabric.Network) (hosts, first, rest float64) {
		seen := false
		for i := range n.Cables {
			c := &n.Cables[i]
			switch {
			case strings.Contains(c.A, "/") || strings.Contains(c.B, "/"):
				hosts += c.Gbit
			case !seen:
				first, seen = c.Gbit, true
			default:
				rest += c.Gbit
			}
		}
		return hosts, first, rest
	}
	hosts, first, rest := rates(n)
	seeds := map[uint64]bool{}
	for _, c := range wires() {
		b := &bench{opt: scenario.Options{Files: fstest.MapFS{"n.json": {Data: n.Format()}}}}
		b.spec.Network.Fabric = "n.json"
		tr := b.trial()
		if err := c.change(tr, 4); err != nil {
			t.Fatal(err)
		}
		changed, err := fabric.ParseNetwork(tr.files[tr.spec.Network.Fabric], "")
		if err != nil {
			t.Fatal(err)
		}
		h, f, r := rates(changed)
		want, routing := [2]float64{first, rest}, n.Routing
		switch c.kind {
		case "link-slow":
			want[0] /= 4
		case "oversubscription":
			want = [2]float64{first / 4, rest / 4}
		case "routing":
			routing = fabric.Static
		case "hash-collision":
			routing = fabric.ECMP
			seeds[tr.spec.Seed] = true
		}
		if h != hosts || f != want[0] || r != want[1] || changed.Routing != routing {
			t.Errorf("%s: hosts %g, first %g, rest %g, %v", c.what, h, f, r, changed.Routing)
		}
	}
	if len(seeds) != 3 || seeds[0] {
		t.Errorf("draws %v", seeds)
	}
	b := &bench{opt: scenario.Options{Files: fstest.MapFS{}}}
	b.spec.Network.Fabric = "none.json"
	if err := b.trial().network(func(*fabric.Network) {}); err == nil {
		t.Error("a fabric that is not there is changed")
	}
}

// TestLogThatTurnsGPUDirectOffIsNoMachine: times are held against the machine with GPUDirect where a log
// says that it was off, and against the file itself where it does not or where the file has it on.
func TestLogThatTurnsGPUDirectOffIsNoMachine(t *testing.T) {
	for _, c := range []struct {
		said bool
		file string
		want string
	}{{true, `<net gdr="0"/>`, `<net gdr="1"/>`}, {false, `<net gdr="0"/>`, ""}, {true, `<net gdr="1"/>`, ""}} {
		q := &work{m: &material{}, rep: &Report{}}
		if c.said {
			q.m.facts = []fact{{"no-gpudirect", "said", hint}}
		}
		b := &bench{opt: scenario.Options{Files: fstest.MapFS{"m.xml": {Data: []byte(c.file)}}}}
		name, want := q.healthy(b, "m.xml"), "m.xml"
		if c.want != "" {
			want = healthyName
		}
		if name != want || (len(q.rep.Notes) > 0) != (c.want != "") {
			t.Errorf("%+v: %s, notes %q", c, name, q.rep.Notes)
		}
		if o, ok := b.opt.Files.(over); ok && string(o.files[name]) != c.want {
			t.Errorf("%+v: %s", c, o.files[name])
		}
	}
}

// TestSuspectsConcernDevices: the page marks the devices that a suspect is about.
func TestSuspectsConcernDevices(t *testing.T) {
	of := map[string][]topo.NodeKind{"late-rank": {topo.GPU}, "setting": {topo.GPU}, "defect": {topo.GPU},
		"pcie": {topo.PCI}, "acs": {topo.PCI}, "nvls-off": {topo.GPU, topo.NVS},
		"p2p-pcie": {topo.GPU, topo.NVS},
		"numa":     {topo.CPU}, "host-memory": {topo.CPU}, "nic-slow": {topo.NET}, "qp": {topo.NET}}
	for kind, want := range of {
		var got []topo.NodeKind
		for _, k := range []topo.NodeKind{topo.GPU, topo.PCI, topo.CPU, topo.NET, topo.NVS} {
			if (&Suspect{Kind: kind}).Concerns(k) {
				got = append(got, k)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// TestSettingsThatCostAreSuspects: a setting of a log that a machine does better without is a suspect, one
// that is its default or says where the network is a part of the machine.
func TestSettingsThatCostAreSuspects(t *testing.T) {
	for _, c := range []struct {
		kv   string
		cost bool
	}{{"NCCL_P2P_DISABLE=1", true}, {"NCCL_P2P_DISABLE=0", false}, {"NCCL_NVLS_ENABLE=0", true},
		{"NCCL_NVLS_ENABLE=1", false}, {"NCCL_NET=Socket", true}, {"NCCL_NET=IB", false},
		{"NCCL_ALGO=Tree", true},
		{"NCCL_BUFFSIZE=1", true}, {"NCCL_IB_HCA=mlx5_0", false}, {"NCCL_SOCKET_IFNAME=eth0", false}} {
		k, v, _ := strings.Cut(c.kv, "=")
		q := &work{m: &material{logs: []string{"x.log"}}, rep: &Report{}, logged: map[string]string{k: v}}
		q.leftOvers()
		if costs := len(q.left) == 1; costs != c.cost || costs == (len(q.logged) == 1) ||
			len(q.m.facts) != len(q.left) {
			t.Errorf("%s: left %q of %q", c.kv, q.left, q.logged)
		}
	}
}

// TestCallsThatDifferAreSaid: of two ranks' entries of one call the name, then the number of elements of an
// all_reduce, then the type is what differs.
func TestCallsThatDifferAreSaid(t *testing.T) {
	e := func(name, typ string, n int64) *flight.Entry {
		return &flight.Entry{Name: name, In: [][]int64{{n}}, InType: typ}
	}
	for _, c := range []struct {
		a, b *flight.Entry
		want string
	}{
		{e("all_reduce", "float", 4), e("broadcast", "half", 5),
			"one called all_reduce, the other broadcast"},
		{e("all_reduce", "float", 4), e("all_reduce", "half", 5), "all_reduce of 4 elements, the other of 5"},
		{e("all_gather", "float", 4), e("all_gather", "float", 5), ""},
		{e("all_gather", "float", 4), e("all_gather", "half", 4), "all_gather of float, the other of half"},
		{e("all_reduce", "float", 4), e("all_reduce", "float", 4), ""},
	} {
		if got := differ(c.a, c.b); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for n, want := range map[int]string{1: "a", 3: "a, b, c", 4: "a, b, c and 1 more",
		5: "a, b, c and 2 more"} {
		if got := list3([]string{"a", "b", "c", "d", "e"}[:n]); got != want {
			t.Errorf("%d names: %q", n, got)
		}
	}
}

// TestLogOfOneNodeSaysNothingOfTheNetwork: that NCCL finds no NIC is no cause where all communicators are of
// one node; where one is of several it is.
func TestLogOfOneNodeSaysNothingOfTheNetwork(t *testing.T) {
	log := "vm:1:1 [0] NCCL INFO NET/IB : No device found.\n" +
		"vm:1:1 [0] NCCL INFO NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'\n" +
		"vm:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0\n" +
		"vm:1:1 [0] NCCL INFO Topology detection : could not read /sys/x/max_link_speed, ignoring\n" +
		"vm:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 4 nNodes 1 localRanks 4 localRank 0 MNNVL 0\n"
	kinds := func(text string) (out []string) {
		for _, f := range factsOf("a.log", []byte(text)) {
			out = append(out, f.kind)
		}
		return out
	}
	if got := kinds(log); !slices.Equal(got, []string{"nvls-off", "virtualised"}) {
		t.Errorf("one node: %q", got)
	}
	far := log + "vm:1:1 [0] NCCL INFO comm 0x2 rank 0 nRanks 16 nNodes 12 localRanks 4 localRank 0 MNNVL 0\n"
	want := []string{"wrong-transport", "no-gpudirect", "nvls-off", "virtualised"}
	for _, text := range []string{far, strings.Split(log, "vm:1:1 [0] NCCL INFO comm")[0]} {
		if got := kinds(text); !slices.Equal(got, want) {
			t.Errorf("several nodes, or not said: %q", got)
		}
	}
}

// TestEveryFactHasAProof: a suspect that a file names has a command that proves it and a remedy.
func TestEveryFactHasAProof(t *testing.T) {
	has := map[string]bool{}
	for _, c := range everyKind() {
		has[c.kind] = c.prove != "" && c.remedy != ""
	}
	for _, r := range evidence {
		if !has[r.kind] && (unsimulated[r.kind].prove == "" || unsimulated[r.kind].remedy == "") {
			t.Errorf("%s has no proof or no remedy", r.kind)
		}
	}
}

package logcheck_test

import (
	"bytes"
	"fmt"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
)

func read(t *testing.T, paths ...string) *ncclog.Log {
	t.Helper()
	var files []ncclog.File
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, ncclog.File{Name: filepath.Base(p), Data: data})
	}
	log, err := ncclog.Read(files...)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// check fails the test for every difference, and returns the lines compared.
func check(t *testing.T, log *ncclog.Log) int {
	t.Helper()
	rep, err := logcheck.Check(logcheck.Input{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range logcheck.Names {
		s := rep.Sections[name.Name]
		n += s.Compared
		t.Logf("%-8s %d of %d", name.Name, s.Equal, s.Compared)
		for _, d := range s.Differences {
			t.Errorf("%s: %s", name.Name, d)
		}
	}
	t.Logf("NCCL %s, %d communicators, notes %q", rep.Version, rep.Comms, rep.Notes)
	return n
}

// TestOwnLogs takes topology, settings and version from logs of NCCL 2.28.9 on
// 4 x H200 alone, and finds every line equal.
func TestOwnLogs(t *testing.T) {
	logs, err := filepath.Glob(golden.Root(t, "testdata", "measured", "h200x4", "logs", "*.log.gz"))
	if err != nil || len(logs) < 5 {
		t.Fatalf("%d logs (%v)", len(logs), err)
	}
	for _, path := range logs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if n := check(t, read(t, path)); n < 50 {
				t.Errorf("%d lines compared", n)
			}
		})
	}
}

// TestSharedLogs is the same for logs that are not part of the repository.
func TestSharedLogs(t *testing.T) {
	shared := golden.Shared(t)
	for _, jobs := range [][]string{
		{"reference-logs/a100-pcie-x2-nvlbridge.log"}, {"reference-logs/rtx4090x4-epyc-calico.log"},
		{"workloads/truth/ddp/nccl_*"}, {"workloads/truth/ep/nccl_*"}, {"workloads/truth/pp/nccl_*"},
		{"workloads/truth/tp/nccl_*"}, {"workloads/truth/single/nccl_init*"},
		{"workloads/truth/pp/nccl_init_rank2.log.gz"},
	} {
		t.Run(jobs[0], func(t *testing.T) {
			paths, _ := filepath.Glob(filepath.Join(shared, jobs[0]))
			check(t, read(t, paths...))
		})
	}
}

// TestRoundTrip writes the log of every machine of testdata/topos as NCCL would
// and takes the machine out of that log again: all lines must come back.
func TestRoundTrip(t *testing.T) {
	files, err := filepath.Glob(golden.Root(t, "testdata", "topos", "*.xml"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d machines (%v)", len(files), err)
	}
	for i, path := range files {
		nodes := 1 + i%2
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%s.n%d", strings.TrimSuffix(filepath.Base(path), ".xml"), nodes),
			func(t *testing.T) {
				site, err := site.Open(site.Nodes(path, nodes))
				if err != nil {
					t.Skip(err)
				}
				check(t, parse(t, logOf(site.Comm)))
			})
	}
}

// TestRoundTripOfReleases is the same for the text of other releases.
func TestRoundTripOfReleases(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: logs of all releases")
	}
	for _, release := range []string{"2.21.5", "2.22.3", "2.23.4", "2.24.3", "2.27.3", "2.27.7", "2.29.7",
		"2.30.7"} {
		for _, name := range []string{"dgx-h100", "hgx-a100-4", "dgx-b200", "gh200-4-alps"} {
			if release != "2.30.7" && name != "dgx-h100" && name != "hgx-a100-4" {
				continue
			}
			for _, nodes := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s.%s.n%d", release, name, nodes), func(t *testing.T) {
					site, err := site.OpenFor(release,
						site.Nodes(golden.Root(t, "testdata", "topos", name+".xml"), nodes))
					if err != nil {
						t.Fatal(err)
					}
					if n := check(t, parse(t, logOf(site.Comm))); n < 20 {
						t.Errorf("%d lines compared", n)
					}
				})
			}
		}
	}
}

// logOf is what all ranks log, with the lines around those of ncclog that say
// which rank it is.
func logOf(c *comm.Comm) []byte {
	var b bytes.Buffer
	if name := models[c.MinSM]; name != "" && (c.MinSM != 80 || c.MaxLocalRanks > 4) {
		for r := range c.NRanks {
			fmt.Fprintf(&b,
				"#  Rank %2d Group  0 Pid   1801 on         vm device  0 [0000:00:06] NVIDIA %s\n", r, name)
		}
	}
	for r := range int32(c.NRanks) {
		prefix := ncclog.RankPrefix(c, r)
		fmt.Fprintf(&b, "%sNCCL version %s+cuda13.0\n", prefix, c.Rules.Version())
		d := &c.Domains[c.NodeOf[r]]
		sys := d.System
		fmt.Fprintf(&b, "%sncclCommInitRank comm 0x1000 rank %d nranks %d cudaDev 0 nvmlDev 0 busId %x "+
			"commId 0xabc - Init START\n", prefix, r, c.NRanks, busOf(sys, int(r-d.First)))
		fmt.Fprintf(&b, "%scomm 0x1000 rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0\n",
			prefix, r, c.NRanks, c.NNodes, len(sys.Of(topo.GPU)), r-d.First)
		for i, id := range sys.Of(topo.NET) {
			n := sys.Nodes[id].Net
			if n.LatencyUs == 75 {
				fmt.Fprintf(&b, "%sUsing network AWS Libfabric\n", prefix)
			}
			fmt.Fprintf(&b, "%sNET/IB : GPU Direct RDMA %s for HCA %d '%s'\n", prefix,
				map[bool]string{true: "Enabled", false: "Disabled"}[n.GDR], i, n.Name)
			fmt.Fprintf(&b, "%sncclTopoPopulateNics : Filled %s in topo with pciPath=/x keep=1 coll=(null)\n",
				prefix, n.Name)
		}
		for _, l := range ncclog.OfRank(c, r) {
			fmt.Fprintf(&b, "%s%s\n", prefix, l.Text)
		}
	}
	return b.Bytes()
}

// busOf is the bus id of a local rank's GPU.
func busOf(sys *topo.System, local int) uint64 {
	for _, id := range sys.Of(topo.GPU) {
		if sys.Nodes[id].GPU.Rank == local {
			return sys.Nodes[id].Ident & (1<<56 - 1)
		}
	}
	return 0
}

// TestPartsOfAHost: a host that NCCL splits is printed by a rank of each part, and read
// again as those parts. 2.30.7 prints the devices of the other parts without their ranks,
// so that its print alone is refused.
func TestPartsOfAHost(t *testing.T) {
	for release, want := range map[string]string{"2.28.9": "", "2.30.7": "where NCCL splits a host"} {
		s, err := site.OpenFor(release,
			scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-a100", Count: 2}}},
			"NCCL_P2P_LEVEL=LOC")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		set := []ncclog.Setting{{Name: "NCCL_P2P_LEVEL", Value: "LOC"}}
		if err := ncclog.WriteInit(&b, s.Comm, set); err != nil {
			t.Fatal(err)
		}
		for i, n := range []int32{0, 2, 4, 6, 8} {
			if prefix := ncclog.RankPrefix(s.Comm, n); bytes.Count(b.Bytes(), []byte(prefix)) == 0 {
				t.Errorf("NCCL %s: part %d of 8, whose first rank is %d, is not printed", release, i, n)
			}
		}
		rep, err := logcheck.Check(logcheck.Input{Log: parse(t, b.Bytes())})
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("NCCL %s: error %v, want %q", release, err, want)
		case want == "" && (err != nil || !rep.Equal):
			t.Errorf("NCCL %s: report %+v, error %v", release, rep, err)
		}
	}
}

// TestSystemsReadAgain: virtual NICs become their ports again, on each host of a domain, and
// GPUs of 2.30.7, which prints no ranks, follow in the order of hosts and bus ids.
func TestSystemsReadAgain(t *testing.T) {
	for _, c := range []struct {
		machine, release string
		nodes            int
	}{{"gcp-a4x-max", "2.27.7", 1}, {"gcp-a4x-max", "2.28.9", 2}, {"gcp-a4x-max", "2.30.7", 3},
		{"gb200-nvl72", "2.30.7", 4}} {
		s, err := site.OpenFor(c.release, scenario.Machine{Nodes: []scenario.Nodes{{Topo: c.machine,
			Count: c.nodes}}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := ncclog.WriteInit(&b, s.Comm, nil); err != nil {
			t.Fatal(err)
		}
		if rep, err := logcheck.Check(logcheck.Input{Log: parse(t, b.Bytes())}); err != nil || !rep.Equal {
			t.Errorf("%d %s, NCCL %s: report %+v, error %v", c.nodes, c.machine, c.release, rep, err)
		}
	}
}

// TestRanksOfDevices: 2.30.7 prints GPUs without their ranks. Rank 0's log alone
// gives its own GPU, and the others the order of their bus ids.
func TestRanksOfDevices(t *testing.T) {
	site, err := site.OpenFor("2.30.7", site.Nodes(golden.Root(t, "testdata", "topos", "hgx-a100-4.xml"), 1))
	if err != nil {
		t.Fatal(err)
	}
	all := logOf(site.Comm)
	one := all[:bytes.Index(all, []byte(ncclog.RankPrefix(site.Comm, 1)))]
	for name, change := range map[string]struct{ from, to, want string }{
		"first rank":    {},
		"part":          {"DEV/0-3000 ", "DEV/0-3001 ", "MLOPart"},
		"two ranks":     {"] - GPU/0-3000", "] - GPU/0-10000003000", "several ranks"},
		"no local rank": {"localRanks 4", "localRanks 2", "where NCCL splits a host"},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.ReplaceAll(one, []byte(change.from), []byte(change.to))
			if change.from == "" {
				data = one
			}
			rep, err := logcheck.Check(logcheck.Input{Log: parse(t, data)})
			if change.want == "" {
				if err != nil || !rep.Equal || len(rep.Notes) != 1 || !strings.Contains(rep.Notes[0],
					"3 GPUs of ranks that logged nothing") {
					t.Fatalf("report %+v, error %v", rep, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("error %v, want %q", err, change.want)
			}
		})
	}
}

func parse(t *testing.T, data []byte) *ncclog.Log {
	t.Helper()
	log, err := ncclog.Read(ncclog.File{Name: "nccl.log", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// models name a GPU of some compute capabilities; of the others, and of A100 four
// a node, the log has no name and Check has to find the class.
var models = map[int]string{70: "Tesla V100-SXM3-32GB", 80: "A100-SXM4-80GB", 90: "H100 80GB HBM3"}

// FuzzRead reads anything.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"h:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n" +
			"h:1:2 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 60 " +
			"commId 0x2 - Init START\n" +
			"h:1:2 [0] NCCL INFO === System : maxBw 370.8 totalBw 370.8 ===\n" +
			"h:1:2 [0] NCCL INFO CPU/0-0 (1/1/4)\nh:1:2 [0] NCCL INFO + PCI[48.0] - GPU/0-60 (0)\n" +
			"h:1:2 [0] NCCL INFO               + NVL[370.8] - NVS/0-0\n" +
			"h:1:2 [0] NCCL INFO + PCI[5000.0] - NIC/0-0\n" +
			"h:1:2 [0] NCCL INFO                 + NET[1.2] - NET/0-0 (0/0/0/1.250000)\n",
		"h:1:2 [0] NCCL INFO CPU/0-0 (1/1/4)\n" +
			"h:1:2 [0] NCCL INFO               + NVL[80.0] - GPU/0-60\n" +
			"h:1:2 [0] NCCL INFO + PCI[48.0] - GPU/0-70 (1)\n" +
			"h:1:2 [0] NCCL INFO GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (1/80.0/NVL)\n",
		"h:1:2 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		log, err := ncclog.Read(ncclog.File{Name: "log", Data: data})
		if err != nil {
			return
		}
		if len(log.Comms) > 2 || len(log.Comms) > 0 && log.Comms[0].NRanks > 64 {
			return // size is bounded elsewhere; the search for many GPUs takes long
		}
		_, _ = logcheck.Check(logcheck.Input{Log: log})
	})
}

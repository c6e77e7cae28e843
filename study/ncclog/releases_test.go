package ncclog_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/parity"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/tuning"
)

// TestFormsOfReleases: each form of a line, with the last release that has it and
// the first that has another. Sources are of the two tags.
func TestFormsOfReleases(t *testing.T) {
	for _, c := range []struct{ name, before, was, from, is string }{
		// graph/topo.cc:292 of 2.22.3 prints the whole id of what a link leads to, 2.23.4:301 host and id.
		{"link", "2.22.3", " + NVL[370.8] - NVS/0\n", "2.23.4", " + NVL[370.8] - NVS/0-0\n"},
		// graph/topo.cc:299 of 2.23.4 and 2.24.3: CollNet is new.
		{"net", "2.23.4", " + NET[50.0] - NET/0-0 (200c00000000001/1/50.000000)\n", "2.24.3",
			" + NET[50.0] - NET/0-8 (0/200c00000000001/1/50.000000)\n"},
		// graph/paths.cc:119 of 2.21.5, :121 of 2.23.4.
		{"paths", "2.22.3", "INFO GPU/1B000 :GPU/0-1b000 (0/5000.0/LOC)", "2.23.4",
			"INFO GPU/0-1b000 :GPU/0-1b000 (0/5000.0/LOC)"},
		// graph/search.cc:1115 of 2.22.3, :1137 of 2.23.4.
		{"graph, nets", "2.22.3", "INFO  0 : NET/0 GPU/0 GPU/7 ", "2.23.4", "INFO  0 : NET/0-0 GPU/0 GPU/7 "},
		// graph/search.cc:1139 of 2.27.3, :1192 of 2.27.5.
		{"graph, GPUs", "2.27.3", "INFO  1 : NET/0-1 GPU/1 ", "2.27.5", "INFO  1 : NET/0-1 GPU/0-"},
		// graph/rings.cc:12 of 2.22.3, :10 of 2.23.4.
		{"ring", "2.22.3",
			"Channel 00/16 :    0   7   6   5   4   3   2   1   9  10  11  12  13  14  15   8\n",
			"2.23.4", "Channel 00/16 :  0  7  6  5  4  3  2  1  9 10 11 12 13 14 15  8\n"},
	} {
		for _, half := range [][3]string{{c.before, c.was, c.is}, {c.from, c.is, c.was}} {
			text := logOf(t, half[0], 2)
			if !strings.Contains(text, half[1]) || strings.Contains(text, half[2]) {
				t.Errorf("%s: NCCL %s does not print %q, or prints %q", c.name, half[0], half[1], half[2])
			}
		}
	}
	// NCCL_NUM_ALGORITHMS is 6 in 2.22.3 (two blocks), 7 in 2.23.4.
	for release, want := range map[string]int{"2.21.5": 2, "2.22.3": 2, "2.23.4": 3, "2.30.7": 3} {
		if n := strings.Count(logOf(t, release, 2), "  Algorithm   |"); n != want {
			t.Errorf("NCCL %s: %d blocks of the cost table, want %d", release, n, want)
		}
	}
	// NVLS graphs: the first GPU alone since 2.27.5 (graph/search.cc:1194).
	for release, want := range map[string]string{"2.27.3": "INFO  2 : GPU/2 GPU/0 ",
		"2.27.5": "INFO  2 : GPU/0-52000\n"} {
		if !strings.Contains(logOf(t, release, 1), want) {
			t.Errorf("NCCL %s: no %q in %s", release, want, logOf(t, release, 1))
		}
	}
}

// TestGraphNetsOfReleases: 2.23.4 prints for the net by which a channel leaves the
// number of the one by which it enters (graph/search.cc:1145), 2.24.3 its own.
func TestGraphNetsOfReleases(t *testing.T) {
	for release, equal := range map[string]bool{"2.22.3": false, "2.23.4": true, "2.24.3": false} {
		c, _, err := parity.BuildFor(release, filepath.Join(golden.Root(t), "testdata", "topos",
			"hgx-a100-4.xml"), 2, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		row := ""
		for _, l := range ncclog.OfRank(c, 0) {
			if strings.HasPrefix(l.Text, " 0 : NET/") {
				row = l.Text // the first is of the rings
				break
			}
		}
		f := strings.Fields(row)
		if len(f) < 4 || (f[2] == f[len(f)-1]) != equal {
			t.Errorf("NCCL %s: %q, first and last equal: want %t", release, row, equal)
		}
	}
}

// TestOpsOfReleases: the line of an operation (enqueue.cc:1613 of 2.22.3, :1855 of
// 2.23.4, :678 of 2.24.3).
func TestOpsOfReleases(t *testing.T) {
	r := plan.Request{Func: coll.AllGather, Type: coll.Float32, Algo: coll.Ring, Proto: coll.Simple,
		Count: 1024}
	choice := tuning.Choice{NBytes: 16 * 4096, TimeUs: 12.5}
	for release, want := range map[string]string{
		"2.22.3": "65536 Bytes -> Algo 1 proto 2 time 12.500000",
		"2.23.4": "AllGather: 65536 Bytes -> Algo 1 proto 2 time 12.500000",
		"2.24.3": "AllGather: 4096 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}",
	} {
		rs, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		if got := ncclog.OfOp(rs, r, &choice, plan.Split{ChannelHi: 7}).Text; got != want {
			t.Errorf("NCCL %s: %q, want %q", release, got, want)
		}
	}
}

// TestReadOfReleases: the lines that begin a communicator and that name a choice,
// as releases print them (init.cc:1404 and :1401 of 2.22.3, :1440 of 2.23.4, :1699 and
// :1675 of 2.29.7; enqueue.cc:1613 of 2.22.3, :1855 of 2.23.4).
func TestReadOfReleases(t *testing.T) {
	const place = "comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 "
	const call = "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 256 datatype 7 op 0 root 0 comm " +
		"0x10 [nranks=2] stream 0x3"
	for _, c := range []struct {
		name, init, op string
		split          bool
	}{
		{"2.22.3", "ncclCommInitRank " + place + "commId 0xabc - Init START",
			"1024 Bytes -> Algo 1 proto 0 time 5.100000", false},
		{"2.22.3, split", "ncclCommSplit " + place + "parent 0x5 color 1 key 0 commId 0xabc - Init START",
			"1024 Bytes -> Algo 1 proto 0 time 5.100000", true},
		{"2.23.4, split", "ncclCommSplit " + place + "parent 0x5 color 1 key 0- Init START",
			"AllReduce: 1024 Bytes -> Algo 1 proto 0 time 5.100000", true},
		{"2.28.9, split", "ncclCommSplit " + place + "parent 0x5 splitCount 1 color 1 key 0- Init START",
			"AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}", true},
		{"2.29.7", "[Rank 0] ncclCommInitRank " + place + "commId 0xabc - Init START",
			"AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}", false},
		{"2.29.7, split", "ncclCommSplit " + place + "parent 0x5 childCount 1 color 1 key 0- Init START",
			"AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}", true},
	} {
		text := ""
		for _, l := range []string{c.init, call, c.op} {
			text += ncclog.Prefix("h", 1, 2, 0) + l + "\n"
		}
		log, err := ncclog.Read(ncclog.File{Name: "log", Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		if len(log.Comms) != 1 || log.Comms[0].NRanks != 2 || log.Comms[0].Split != c.split ||
			log.Comms[0].ID == "" {
			t.Errorf("%s: communicators %+v", c.name, log.Comms)
			continue
		}
		ops := log.Comms[0].Ranks[0].Ops
		if len(ops) != 1 || ops[0].Func != "AllReduce" || ops[0].Bytes != 1024 || !ops[0].Called ||
			ops[0].Type != 7 {
			t.Errorf("%s: choices %+v", c.name, ops)
		}
	}
}

// logOf is the log of DGX H100 machines by a release's rules.
func logOf(t *testing.T, release string, nodes int) string {
	t.Helper()
	c, _, err := parity.BuildFor(release, filepath.Join(golden.Root(t), "testdata", "topos", "dgx-h100.xml"),
		nodes, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := ncclog.WriteRank(&b, c, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestVersionAlone: NCCL 2.21.5 prints its version without the prefix of its other
// lines (init.cc:476), on the standard output.
func TestVersionAlone(t *testing.T) {
	log, err := ncclog.Read(ncclog.File{Name: "log",
		Data: []byte("NCCL version 2.21.5+cuda12.4\nh:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 1\n")})
	if err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.21.5" || log.CUDA != "12.4" {
		t.Errorf("version %q with CUDA %q", log.Version, log.CUDA)
	}
}

// TestNVLSTuningLine: 2.30.7 prints channels and chunks of NVLS before the trees
// (transport/nvls.cc:242, init.cc:1456), where there is NVLS: on one DGX B200 24 channels
// (nvls.cc:210), on two, with nets of 48 GB/s near the GPUs, 32 and trees' chunks of
// 64 KiB (nvls.cc:163).
func TestNVLSTuningLine(t *testing.T) {
	for _, x := range []struct {
		release, on string
		nodes       int
		want        []string
	}{
		{"2.30.7", "dgx-b200", 1,
			[]string{"NVLS tuning: nChannels 24 chunkSize 131072 treeMaxChunkSize 131072"}},
		{"2.30.7", "dgx-b200", 2,
			[]string{"NVLS tuning: nChannels 32 chunkSize 131072 treeMaxChunkSize 65536"}},
		{"2.30.7", "dgx-h100", 4,
			[]string{"NVLS tuning: nChannels 16 chunkSize 131072 treeMaxChunkSize 65536"}},
		{"2.30.7", "hgx-a100-4", 2, nil}, {"2.29.7", "dgx-b200", 2, nil},
	} {
		c, _, err := parity.BuildFor(x.release, filepath.Join(golden.Root(t), "testdata", "topos",
			x.on+".xml"), x.nodes, x.on != "hgx-a100-4", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range ncclog.OfRank(c, 0) {
			if strings.HasPrefix(l.Text, "NVLS tuning") {
				got = append(got, l.Text)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("NCCL %s on %d %s: %q, want %q", x.release, x.nodes, x.on, got, x.want)
		}
	}
}

// TestOneRankHasNoTables: of times and thresholds there is nothing to print for it (tuning.cc:505,
// init.cc:1242), and the first of two prints both.
func TestOneRankHasNoTables(t *testing.T) {
	for nodes, want := range map[int]bool{1: false, 2: true} {
		c, _, err := parity.BuildFor("2.28.9", golden.Root(t, "testdata", "topos", "gh200.xml"), nodes, false,
			nil)
		if err != nil {
			t.Fatal(err)
		}
		table, thresholds := false, false
		for _, l := range ncclog.OfRank(c, 0) {
			table = table || strings.Contains(l.Text, "MaxBw") || strings.Contains(l.Text, "Max NThreads")
			thresholds = thresholds || strings.HasPrefix(l.Text, "threadThresholds")
		}
		if c.NRanks != nodes || table != want || thresholds != want {
			t.Errorf("%d ranks: table %t, thresholds %t, want %t", c.NRanks, table, thresholds, want)
		}
	}
}

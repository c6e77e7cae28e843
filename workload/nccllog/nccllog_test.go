package nccllog

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
)

// TestTruth: logs of all ranks are programs that play.
func TestTruth(t *testing.T) {
	for mode, calls := range map[string]int{"ddp": 4 * 52, "ep": 4 * 50, "pp": -1, "tp": -1} {
		t.Run(mode, func(t *testing.T) {
			var l Log
			for r := range 4 {
				for _, kind := range []string{"init", "coll"} {
					name := fmt.Sprintf("nccl_%s_rank%d.log.gz", kind, r)
					f, err := os.Open(filepath.Join("..", "..", "..", "shared", "workloads", "truth", mode,
						name))
					if err != nil {
						t.Skip("the recordings beside the checkout are not there: " + err.Error())
					}
					defer f.Close()
					z, err := gzip.NewReader(f)
					if err != nil {
						t.Fatal(err)
					}
					if err := l.Read(z, name); err != nil {
						t.Fatal(err)
					}
				}
			}
			p, notes, err := l.Program()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Lint(); err != nil {
				t.Fatal(err)
			}
			if calls >= 0 && l.Calls() != calls || l.Version != "2.28.9" || p.Ranks() != 4 {
				t.Errorf("%d calls, NCCL %s, %d ranks", l.Calls(), l.Version, p.Ranks())
			}
			if _, err := streams.Run(t.Context(), streams.Apart(p, nil, 32<<20)); err != nil {
				t.Error(err)
			}
			t.Log(l.Calls(), len(p.Calls), len(p.Comms), notes)
		})
	}
}

const small = `n0:10:10 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
n0:10:10 [0] NCCL INFO ncclCommInitRankConfig comm 0xa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x77 - Init COMPLETE
n1:10:10 [0] NCCL INFO ncclCommInitRankConfig comm 0xb rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x77 - Init COMPLETE
n0:10:10 [0] NCCL INFO ncclCommSplit comm 0xc rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 60 parent 0xa splitCount 1 color 5 key 1 - Init COMPLETE
n1:10:10 [0] NCCL INFO ncclCommSplit comm 0xd rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 parent 0xb splitCount 1 color 5 key 0 - Init COMPLETE
[2026-11-22 10:00:00] n0:10:11 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1024 datatype 9 op 4 root 0 comm 0xa [nranks=2] stream 0x7
n1:10:11 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1024 datatype 9 op 4 root 0 comm 0xb [nranks=2] stream 0x7
n0:10:11 [0] NCCL INFO AllReduce: 2048 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}
n0:10:11 [0] NCCL INFO Send: opCount 1a sendbuff 0x1 recvbuff (nil) count 8 datatype 7 op 0 root 0 comm 0xc [nranks=2] stream 0x7
n1:10:11 [0] NCCL INFO Recv: opCount 1a sendbuff (nil) recvbuff 0x1 count 8 datatype 7 op 0 root 1 comm 0xd [nranks=2] stream 0x7
`

// TestSmall: two hosts, a split whose ranks are in reverse.
func TestSmall(t *testing.T) {
	var l Log
	if err := l.Read(strings.NewReader(small), "f"); err != nil {
		t.Fatal(err)
	}
	p, _, err := l.Program()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	if len(p.Comms) != 2 || p.Comms[0].Ranks != nil || p.Calls[0].RedOp != coll.Avg ||
		p.Calls[0].Type != coll.BFloat16 {
		t.Errorf("%+v %+v", p.Comms, p.Calls)
	}
	if diff := cmp.Diff([]int32{1, 0}, p.Comms[1].Ranks); diff != "" {
		t.Error(diff)
	}
	for _, x := range []struct{ from, to, want string }{
		{"count 8 datatype 7", "count x datatype 7", `f:9:1: Send has count of "x"`},
		{"datatype 9 op 4 root 0 comm 0xa", "datatype 99 op 4 root 0 comm 0xa",
			"f:6:1: data type 99 is not known"},
		{"n1:10:11 [0] NCCL INFO Recv", "n1:10:11 [0] NCCL INFO Rcv", "f:10:1: Rcv is no operation"},
	} {
		var l Log
		if err := l.Read(strings.NewReader(strings.Replace(small, x.from, x.to, 1)), "f"); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
	var bare Log
	if err := bare.Read(strings.NewReader(strings.Join(strings.Split(small, "\n")[5:7], "\n")), "f"); err !=
		nil {
		t.Fatal(err)
	}
	if p, notes, err := bare.Program(); err != nil || len(p.Of) != 2 || len(notes) != 2 {
		t.Errorf("%v %v", notes, err)
	}
}

// FuzzRead: an error, or a program.
func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		var l Log
		if l.Read(strings.NewReader(text), "f") == nil {
			if p, _, err := l.Program(); err == nil && len(p.Of) < 1000 {
				_ = p.Lint()
			}
		}
	})
}

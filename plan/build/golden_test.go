package build

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// goldenDoc is what these tests read of a decision document.
type goldenDoc struct {
	NNodes, NRanks int
	Env            map[string]string
	Channels       struct {
		NChannels, CollChannels, NvlsChannels, NvlsChunkSize int
		P2pnChannels, P2pnChannelsPerPeer, P2pChunkSize      int
		NNodes, IsAllNvlink                                  int
		BuffSizes                                            [3]int64
		RingOrder                                            [][]int32
		Ranks                                                []struct {
			Node int32
			Ch   [][6]int32
			Nvls []struct {
				HeadRank, NHeads int32
				TreeUp           int32
				TreeDown         [3]int32
			}
		}
	}
	Selection []goldenChoice
}

type goldenPart struct {
	Count, ChunkSize, SliceSize, LoopSize int64
	ChunkSteps, SliceSteps, NSteps        int
}

type goldenChoice struct {
	Func, Algo, Proto               string
	Size, Count                     int64
	Error                           int
	NMaxChannels, NWarps            int
	ChannelLo, ChannelHi, NChannels int
	ElemSize                        int64
	Lo, Mid, Hi                     goldenPart
}

func readGolden(tb testing.TB, path string) *goldenDoc {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	d := new(goldenDoc)
	if err := json.NewDecoder(z).Decode(d); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return d
}

// goldenFiles lists the available decision documents: those of the project, and
// all where the shared folder is there too.
func goldenFiles(tb testing.TB) []string {
	tb.Helper()
	files, _ := filepath.Glob("../../testdata/topos/golden/*.json.gz")
	if all, _ := filepath.Glob("../../../shared/golden/*.json.gz"); len(all) > 0 {
		files = all
	} else {
		tb.Log("../../../shared/golden is absent: only the project's own documents are compared")
	}
	if len(files) == 0 {
		tb.Fatal("no decision documents found")
	}
	return files
}

// comm builds the communicator that the document describes.
func (d *goldenDoc) comm() *connect.Layout {
	ch := &d.Channels
	c := &connect.Layout{Rules: rules.Default(),
		NRanks: d.NRanks, NNodes: max(ch.NNodes, 1),
		NChannels: ch.NChannels, CollChannels: ch.CollChannels,
		NVLSChannels: ch.NvlsChannels, NVLSChunkSize: units.Bytes(ch.NvlsChunkSize),
		P2PChannels: ch.P2pnChannels, P2PChannelsPerPeer: ch.P2pnChannelsPerPeer,
		P2PChunkSize: units.Bytes(ch.P2pChunkSize), IsAllNVLink: ch.IsAllNvlink != 0,
	}
	for i, b := range ch.BuffSizes {
		c.BuffSizes[i] = units.Bytes(b)
	}
	c.NodeRanks = make([][]int32, c.NNodes)
	for r, rk := range ch.Ranks {
		c.NodeOf = append(c.NodeOf, rk.Node)
		c.LocalRank = append(c.LocalRank, int32(len(c.NodeRanks[rk.Node])))
		c.NodeRanks[rk.Node] = append(c.NodeRanks[rk.Node], int32(r))
	}
	for i := range c.NChannels {
		var t connect.Channel
		for _, rk := range ch.Ranks {
			v := rk.Ch[i]
			t.Ring = append(t.Ring, connect.RingLinks{Prev: v[0], Next: v[1]})
			t.Tree = append(t.Tree, connect.TreeLinks{Up: v[2], Down: [3]int32{v[3], v[4], v[5]}})
		}
		if i < len(ch.RingOrder) {
			t.Order = ch.RingOrder[i]
		}
		c.Channels = append(c.Channels, t)
	}
	for i := range c.NVLSChannels {
		var v connect.NVLSChannel
		v.HeadIndex = make([]int32, c.NRanks)
		for r, rk := range ch.Ranks {
			n := rk.Nvls[i]
			v.TreeUp = append(v.TreeUp, n.TreeUp)
			v.TreeDown = append(v.TreeDown, n.TreeDown)
			v.HeadIndex[r] = n.HeadRank
			if rk.Node == 0 && n.HeadRank >= 0 {
				for int(n.HeadRank) >= len(v.Heads) {
					v.Heads = append(v.Heads, -1)
				}
				v.Heads[n.HeadRank] = int32(r)
			}
		}
		c.NVLS = append(c.NVLS, v)
	}
	return c
}

func (g goldenPart) part() plan.Part {
	return plan.Part{
		Count: g.Count, ChunkSize: units.Bytes(g.ChunkSize), SliceSize: units.Bytes(g.SliceSize),
		ChunkSteps: g.ChunkSteps, SliceSteps: g.SliceSteps, NSteps: g.NSteps,
		LoopSize: units.Bytes(g.LoopSize),
	}
}

func (g *goldenChoice) request(tb testing.TB) plan.Request {
	tb.Helper()
	f, err := coll.ParseFunc(g.Func)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := coll.ParseAlgorithm(g.Algo)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := coll.ParseProtocol(g.Proto)
	if err != nil {
		tb.Fatal(err)
	}
	return plan.Request{Func: f, Count: g.Count, Type: coll.Float32, Algo: a, Proto: p,
		Channels: g.NMaxChannels, Warps: g.NWarps}
}

// TestScheduleIsNCCLs compares channels and chunking of every choice of every
// decision document with NCCL 2.28.9 (enqueue.cc, scheduleCollTasksToPlan and
// calcCollChunking).
func TestScheduleIsNCCLs(t *testing.T) {
	if testing.Short() {
		t.Log("-short: every eighth document")
	}
	total, equal, failed := 0, 0, 0
	for i, path := range goldenFiles(t) {
		if testing.Short() && i%8 != 0 {
			continue
		}
		d := readGolden(t, path)
		c := d.comm()
		for j := range d.Selection {
			g := &d.Selection[j]
			if g.Error != 0 {
				continue
			}
			total++
			got, err := Split(c, g.request(t))
			want := plan.Split{
				ChannelLo: g.ChannelLo, ChannelHi: g.ChannelHi, NChannels: g.NChannels,
				ElemSize: units.Bytes(g.ElemSize),
				Lo:       g.Lo.part(), Mid: g.Mid.part(), Hi: g.Hi.part(),
			}
			if err == nil && got == want {
				equal++
				continue
			}
			if failed++; failed <= 5 {
				t.Errorf("%s: %s %d %s/%s: %v\n got %+v\nwant %+v", strings.TrimSuffix(filepath.Base(path),
					".json.gz"),
					g.Func, g.Size, g.Algo, g.Proto, err, got, want)
			}
		}
	}
	t.Logf("splits equal to NCCL's: %d/%d", equal, total)
	if equal != total {
		t.Errorf("%d of %d splits differ", total-equal, total)
	}
}

package tuning_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// drawInput makes a communicator as init could leave one.
func drawInput(t *rapid.T) tuning.Input {
	nodes := rapid.SampledFrom([]int{1, 2, 3, 4, 16, 100}).Draw(t, "nodes")
	local := rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(t, "local")
	if nodes*local == 1 {
		local = 2
	}
	in := tuning.Input{
		NRanks: nodes * local, NNodes: nodes, LocalRanks: local, MaxLocalRanks: local,
		Channels: rapid.IntRange(1, 64).Draw(t, "channels"), NVLSChannels: 16,
		NVLS:    rapid.Bool().Draw(t, "nvls"),
		MinSM:   rapid.SampledFrom([]int{60, 70, 80, 90, 100}).Draw(t, "sm"),
		CPUArch: 1, CPUVendor: topo.CPUVendor(rapid.IntRange(1, 4).Draw(t, "vendor")), NVSwitch: true,
		TreePattern: search.Pattern(rapid.IntRange(1, 3).Draw(t, "pattern")),
	}
	in.MaxSM = in.MinSM
	for id := range in.Graphs {
		in.Graphs[id] = &search.Graph{
			ID: id, NChannels: rapid.IntRange(1, 32).Draw(t, "n"),
			BWIntra:   units.GBps(rapid.Float32Range(0.1, 100).Draw(t, "intra")),
			BWInter:   units.GBps(rapid.Float32Range(0.1, 50).Draw(t, "inter")),
			TypeIntra: topo.PathKind(rapid.IntRange(1, 9).Draw(t, "typeIntra")),
			TypeInter: topo.PathKind(rapid.IntRange(4, 9).Draw(t, "typeInter")),
		}
	}
	return in
}

func drawOp(t *rapid.T) tuning.Op {
	return tuning.Op{
		Func: coll.Func(rapid.IntRange(0, coll.NumCollFuncs-1).Draw(t, "func")), Type: coll.Float32,
		Count: rapid.Int64Range(1, 1<<32).Draw(t, "count"),
	}
}

func model(t rapid.TB, in tuning.Input) *tuning.Model {
	m, err := tuning.New(in, tuning.Params{Rules: rules.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFasterGraphsAreNeverSlower: with all graphs faster, the chosen time does
// not grow.
func TestFasterGraphsAreNeverSlower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, o := drawInput(t), drawOp(t)
		before, err := model(t, in).Choose(o)
		if err != nil {
			return // nothing under an hour, see TestLaunchIsSane
		}
		by := units.GBps(rapid.Float32Range(1, 4).Draw(t, "by"))
		for id, g := range in.Graphs {
			faster := *g
			faster.BWIntra, faster.BWInter = g.BWIntra*by, g.BWInter*by
			in.Graphs[id] = &faster
		}
		after, err := model(t, in).Choose(o)
		if err != nil {
			t.Fatal(err)
		}
		if after.TimeUs > before.TimeUs {
			t.Fatalf("%g us with slow graphs, %g us with graphs %g times as fast", before.TimeUs,
				after.TimeUs, by)
		}
	})
}

// TestMoreBytesTakeLonger: within a cell, except where NCCL's table of tree
// corrections or its plateau steps, more bytes never take less time.
func TestMoreBytesTakeLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := model(t, drawInput(t)), drawOp(t)
		a, p := coll.Algorithm(rapid.IntRange(0, 6).Draw(t, "algo")),
			coll.Protocol(rapid.IntRange(0, 2).Draw(t, "proto"))
		bigger := o
		bigger.Count += rapid.Int64Range(1, 1<<20).Draw(t, "more")
		x, y := m.Terms(o, a, p), m.Terms(bigger, a, p)
		if x.Correction != y.Correction || x.Plateau != y.Plateau {
			return
		}
		if c, d := m.Force(o, a, p), m.Force(bigger, a, p); c.TimeUs >= 0 && d.TimeUs < c.TimeUs {
			t.Fatalf("%v %v: %d bytes %g us, %d bytes %g us", a, p, c.NBytes, c.TimeUs, d.NBytes, d.TimeUs)
		}
	})
}

// leastUs is the least time of any cell that is on, +Inf without one.
func leastUs(m *tuning.Model, o tuning.Op) float32 {
	least := float32(math.Inf(1))
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			if c := m.Force(o, a, p); c.TimeUs >= 0 {
				least = min(least, c.TimeUs)
			}
		}
	}
	return least
}

// TestLaunchIsSane: channels and threads stay within what NCCL can launch; it
// finds nothing only where all would last an hour (enqueue.cc:1828).
func TestLaunchIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := model(t, drawInput(t)), drawOp(t)
		c, err := m.Choose(o)
		if err != nil {
			if least := leastUs(m, o); least < 3.6e9 {
				t.Fatalf("%v, although one takes %g us", err, least)
			}
			return
		}
		if c.MaxChannels < 1 || c.MaxChannels > 64 || c.Threads < 96 || c.Threads > 640 ||
			c.Threads != 32*c.Warps {
			t.Fatalf("%+v", c)
		}
	})
}

// FuzzAlgoList: any text as NCCL_ALGO and NCCL_PROTO gives a model, or the
// typed error that names the token at fault.
func FuzzAlgoList(f *testing.F) {
	for _, s := range []string{"ring,tree;allreduce:^tree", "^", ";x", "a:b:c", ":", "allreduce:",
		"^LL128;allreduce:LL128", "Ring;;Tree"} {
		f.Add(s)
	}
	in := tuning.Input{NRanks: 8, NNodes: 2, LocalRanks: 4, MaxLocalRanks: 4, Channels: 8, MinSM: 90,
		MaxSM: 90}
	f.Fuzz(func(t *testing.T, list string) {
		for _, p := range []tuning.Params{{Rules: rules.Default(), Algo: units.Some(list)},
			{Rules: rules.Default(), Proto: units.Some(list)}} {
			m, err := tuning.New(in, p)
			var mask *coll.MaskError
			if err != nil && !errors.As(err, &mask) || err == nil && m == nil {
				t.Fatalf("%q: %v", list, err)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	d := loadDoc(b, "../testdata/topos/golden/dgx-h100.n2.json.gz")
	in, p := d.input(), tuning.Params{Rules: rules.Default()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tuning.New(in, p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChoose is one decision; NCCL makes one for every call of a user.
func BenchmarkChoose(b *testing.B) {
	d := loadDoc(b, "../testdata/topos/golden/dgx-h100.n2.json.gz")
	m, err := tuning.New(d.input(), tuning.Params{Rules: rules.Default()})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int64{1 << 10, 1 << 28} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Choose(tuning.Op{Func: coll.AllReduce, Count: n, Type: coll.Float32}); err !=
					nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSegments(b *testing.B) {
	d := loadDoc(b, "../testdata/topos/golden/dgx-h100.n2.json.gz")
	m, err := tuning.New(d.input(), tuning.Params{Rules: rules.Default()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Segments(tuning.Op{Func: coll.AllReduce, Type: coll.Float32}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// TestChooseAllocatesNothing holds for the hot call.
func TestChooseAllocatesNothing(t *testing.T) {
	d := loadDoc(t, "../testdata/topos/golden/dgx-h100.n2.json.gz")
	m, err := tuning.New(d.input(), tuning.Params{Rules: rules.Default()})
	if err != nil {
		t.Fatal(err)
	}
	o := tuning.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Float32}
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Choose(o) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

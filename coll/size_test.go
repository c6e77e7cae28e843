package coll

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/units"
)

// TestSizesAsNCCLTests checks rows of nccl-tests 2.19.6 on 4 GPUs
// (testdata/measured/h200x4/nccl-tests, perf_*_4.txt): size and count columns
// for a -b value.
func TestSizesAsNCCLTests(t *testing.T) {
	for _, c := range []struct {
		f           Func
		b           units.Bytes
		typ         DataType
		n           int
		size, count int64
	}{
		{AllReduce, 8, Float32, 4, 8, 2},
		{AllGather, 8, Float32, 4, 0, 0},
		{AllGather, 32, Float32, 4, 0, 0},
		{AllGather, 64, Float32, 4, 64, 4},
		{ReduceScatter, 96, Float32, 4, 64, 4},
		{AllToAll, 1 << 20, Float32, 4, 1 << 20, 1 << 16},
		{Gather, 100, Float32, 3, 96, 8},
		{Scatter, 100, Float16, 3, 96, 16},
		{Broadcast, 7, Float32, 4, 4, 1},
		{SendRecv, 12, Float64, 2, 8, 1},
		{AllGather, 127, Int8, 4, 64, 16},
	} {
		s := TestSizes(c.f, c.b, c.typ, c.n)
		if int64(s.Bytes(c.typ)) != c.size || s.Count != c.count {
			t.Errorf("%v -b %d -d %s on %d: size %d count %d, want %d %d", c.f, c.b, c.typ.TestName(), c.n,
				s.Bytes(c.typ), s.Count, c.size, c.count)
		}
	}
}

func TestExactSizesDoNotRound(t *testing.T) {
	if s := ExactSizes(AllGather, 240, Float32, 4); s.Count != 15 || s.RecvCount != 60 ||
		s.SendInPlace != 15 {
		t.Errorf("%+v", s)
	}
	if s := ExactSizes(ReduceScatter, 241, Float32, 4); s.Count != 15 || s.SendCount != 60 ||
		s.RecvInPlace != 15 {
		t.Errorf("%+v", s)
	}
}

// TestSizeProperties: rounding never grows a size, loses less than 16 bytes a
// rank and one element, and is a fixed point.
func TestSizeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(Funcs()).Draw(t, "op")
		typ := rapid.SampledFrom(DataTypes()).Draw(t, "type")
		n := rapid.IntRange(1, 1<<17).Draw(t, "ranks")
		b := units.Bytes(rapid.Int64Range(0, 1<<44).Draw(t, "bytes"))
		s := TestSizes(f, b, typ, n)
		got := s.Bytes(typ)
		slack := typ.Size()
		if f.PerRank() {
			slack = units.Bytes(n) * 16
			if s.Count*int64(typ.Size())%16 != 0 {
				t.Fatalf("a part of %d elements is not a multiple of 16 bytes", s.Count)
			}
		}
		if got > b || b-got >= slack+typ.Size()*units.Bytes(n) {
			t.Fatalf("%v %d bytes became %d", f, b, got)
		}
		if again := TestSizes(f, got, typ, n); again != s {
			t.Fatalf("not a fixed point: %+v then %+v", s, again)
		}
		if e := ExactSizes(f, b, typ, n); e.Count < s.Count {
			t.Fatalf("exact %d below rounded %d", e.Count, s.Count)
		}
	})
}

// TestBandwidthOfARow recomputes a row of perf_all_reduce_4.txt's kind:
// 1 GiB in 4.523 ms on 4 ranks.
func TestBandwidthOfARow(t *testing.T) {
	alg, bus := Bandwidth(AllReduce, 1<<28, Float32, 4, units.FromMicros(4523))
	if got := fmt.Sprintf("%.2f %.2f", alg, bus); got != "237.40 356.09" {
		t.Error(got)
	}
	alg, bus = Bandwidth(AllGather, 1<<26, Float32, 4, units.FromMicros(1000))
	if got := fmt.Sprintf("%.2f %.2f", alg, bus); got != "1073.74 805.31" {
		t.Error(got)
	}
	for _, f := range Funcs() {
		if alg, bus := Bandwidth(f, 5, Float32, 1, 0); alg != 0 || bus != 0 || math.IsNaN(f.BusFactor(1)) {
			t.Errorf("%v: %v %v", f, alg, bus)
		}
	}
}

func TestFactors(t *testing.T) {
	got := ""
	for _, f := range Funcs() {
		got += fmt.Sprintf("%s=%g ", f.TestName(), f.BusFactor(8))
	}
	want := "broadcast=1 reduce=1 all_gather=0.875 reduce_scatter=0.875 all_reduce=1.75 sendrecv=1 " +
		"alltoall=0.875 gather=0.875 scatter=0.875 "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

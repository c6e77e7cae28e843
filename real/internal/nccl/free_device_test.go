package nccl

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/units"
)

// island is a team with the free algorithms set up on every rank.
type island struct {
	*Team
	free    []*cuda.Free
	in, out [cuda.MaxRanks]cuda.Ptr
	meet    func() error
}

const islandBuffer = 1 << 30

// newIsland takes SIMCCL_TEST_GPUS of the machine's GPUs, at most four where
// that is not said.
func newIsland(t *testing.T) *island {
	t.Helper()
	d, l := hardware(t)
	n := min(d.Count(), 4)
	if s := os.Getenv("SIMCCL_TEST_GPUS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n > d.Count() {
			t.Fatalf("SIMCCL_TEST_GPUS=%s: this machine has %d", s, d.Count())
		}
	}
	if n < 2 {
		t.Skip("one GPU has no peers")
	}
	id, err := l.NewID()
	if err != nil {
		t.Fatal(err)
	}
	gpus := make([]int, n)
	for i := range gpus {
		gpus[i] = i
	}
	team, err := NewTeam(d, l, id, gpus, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	is := &island{Team: team, free: make([]*cuda.Free, n), meet: NewMeeting(n).Wait}
	devs := make([]*cuda.Device, n)
	arenas := make([]cuda.Ptr, n)
	err = team.Each(func(m *Member) (err error) {
		r := m.Rank
		devs[r] = m.dev
		stop, err := cuda.NewStop(m.dev)
		if err != nil {
			return err
		}
		if is.free[r], err = cuda.NewFree(cuda.NewKernels(m.dev), r, n, stop); err != nil {
			return err
		}
		if is.in[r], err = m.dev.Alloc(islandBuffer); err != nil {
			return err
		}
		if is.out[r], err = m.dev.Alloc(islandBuffer); err != nil {
			return err
		}
		arenas[r] = is.free[r].Arena()
		if err = is.meet(); err != nil {
			return err
		}
		for p := range n {
			if p != r {
				if err := m.dev.EnablePeer(devs[p]); err != nil {
					return err
				}
			}
		}
		is.free[r].SetPeers(arenas)
		return is.meet()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { team.Close() })
	return is
}

// parts returns buffer bytes of one rank's input and output.
func parts(f coll.Func, b units.Bytes, n int) (in, out units.Bytes) {
	switch f {
	case coll.AllGather:
		return b, b * units.Bytes(n)
	case coll.ReduceScatter:
		return b * units.Bytes(n), b
	case coll.AllToAll:
		return b * units.Bytes(n), b * units.Bytes(n)
	}
	return b, b
}

// encode writes a small integer as an element of the type.
func encode(t coll.DataType, v int, b []byte) int {
	switch t {
	case coll.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
		return 4
	case coll.BFloat16:
		binary.LittleEndian.PutUint16(b, uint16(math.Float32bits(float32(v))>>16))
		return 2
	case coll.Float16:
		binary.LittleEndian.PutUint16(b, half(v))
		return 2
	case coll.Int8:
		b[0] = byte(v)
		return 1
	case coll.Int32:
		binary.LittleEndian.PutUint32(b, uint32(v))
		return 4
	}
	binary.LittleEndian.PutUint64(b, uint64(v))
	return 8
}

// half encodes an integer of at most 11 bits exactly.
func half(v int) uint16 {
	if v == 0 {
		return 0
	}
	sign := uint16(0)
	if v < 0 {
		sign, v = 1<<15, -v
	}
	e := 0
	for v>>(e+1) > 0 {
		e++
	}
	return sign | uint16(e+15)<<10 | uint16((v<<10>>e)&0x3ff)
}

// element is rank r's input element i: chosen so that every reduction is exact
// in every type (avg: sums divisible by 2, 4 and 8).
func element(op coll.RedOp, r, i int) int {
	switch op {
	case coll.Prod:
		return 1 + (i+r)%2
	case coll.Avg:
		return 8 * ((i + r) % 3)
	}
	return (i*7+r*3)%13 - 4
}

func reduced(op coll.RedOp, n, i int) int {
	acc := element(op, 0, i)
	for r := 1; r < n; r++ {
		v := element(op, r, i)
		switch op {
		case coll.Prod:
			acc *= v
		case coll.Max:
			acc = max(acc, v)
		case coll.Min:
			acc = min(acc, v)
		default:
			acc += v
		}
	}
	return acc
}

// expected is element i of rank r's output; avg of the sum may be a fraction,
// so sums there are built to divide evenly.
func expected(o *cuda.FreeOp, r, n, count, i int) int {
	var v int
	switch o.Func {
	case coll.AllReduce:
		v = reduced(o.Red, n, i)
	case coll.ReduceScatter:
		v = reduced(o.Red, n, r*count+i)
	case coll.AllGather:
		return element(o.Red, i/count, i%count)
	case coll.AllToAll:
		return element(o.Red, i/count, r*count+i%count)
	}
	if o.Red == coll.Avg {
		return v / n
	}
	return v
}

var freeFuncs = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.AllToAll}

// TestFreeAlgorithmsAreExact checks every operation, shape, type and reduction
// on odd sizes, element by element.
func TestFreeAlgorithmsAreExact(t *testing.T) {
	is := newIsland(t)
	n := is.N
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cases := 0
	types := []coll.DataType{coll.Float32, coll.Float16, coll.BFloat16, coll.Int8, coll.Int32, coll.Int64}
	for _, f := range freeFuncs {
		for _, typ := range types {
			ops := []coll.RedOp{coll.Sum}
			if f == coll.AllReduce || f == coll.ReduceScatter {
				ops = []coll.RedOp{coll.Sum, coll.Prod, coll.Max, coll.Min, coll.Avg}
			}
			for _, red := range ops {
				for _, count := range []int{1, 33, 4099, 262144} {
					if red != coll.Sum && count > 4099 {
						continue
					}
					for _, shape := range cuda.FreeShapes(f) {
						cases++
						if err := is.check(ctx, cuda.FreeOp{Func: f, Shape: shape, Type: typ, Red: red},
							count); err != nil {
							t.Errorf("%v %v %v %v count %d: %v", shape, f, typ, red, count, err)
							return
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases on %d GPUs, every element equal", cases, n)
}

func (is *island) check(ctx context.Context, o cuda.FreeOp, count int) error {
	var size [8]byte
	elem := encode(o.Type, 0, size[:])
	o.Bytes = units.Bytes(count * elem)
	o.In, o.Out = is.in, is.out
	if o.Red == coll.Avg && is.N == 3 {
		return nil
	}
	if !is.free[0].Fits(&o) {
		return nil
	}
	inB, outB := parts(o.Func, o.Bytes, is.N)
	return is.Each(func(m *Member) error {
		raw := make([]byte, inB)
		for i := 0; i*elem < len(raw); i++ {
			encode(o.Type, element(o.Red, m.Rank, i), raw[i*elem:])
		}
		if err := m.dev.Upload(is.in[m.Rank], raw); err != nil {
			return err
		}
		if err := m.dev.Set(is.out[m.Rank], 0xa5, outB+64, m.stream); err != nil {
			return err
		}
		if err := m.dev.Sync(m.stream); err != nil {
			return err
		}
		if err := is.meet(); err != nil {
			return err
		}
		if err := is.free[m.Rank].Queue(&o, m.stream); err != nil {
			return err
		}
		if err := m.wait(ctx); err != nil {
			return err
		}
		if err := is.meet(); err != nil {
			return err
		}
		return is.compare(m, &o, count, elem, outB)
	})
}

func (is *island) compare(m *Member, o *cuda.FreeOp, count, elem int, outB units.Bytes) error {
	got := make([]byte, outB+64)
	if err := m.dev.Download(got, is.out[m.Rank]); err != nil {
		return err
	}
	for i, b := range got[outB:] {
		if b != 0xa5 {
			return fmt.Errorf("rank %d wrote %d bytes past the end", m.Rank, i+1)
		}
	}
	var want [8]byte
	for i := 0; i*elem < int(outB); i++ {
		encode(o.Type, expected(o, m.Rank, is.N, count, i), want[:])
		if string(got[i*elem:(i+1)*elem]) != string(want[:elem]) {
			return fmt.Errorf("rank %d element %d: got %x, want %x", m.Rank, i, got[i*elem:(i+1)*elem],
				want[:elem])
		}
	}
	return nil
}

// TestFreeAgainstNCCL prints device times of every shape beside NCCL's in the
// same run, graph replay; it judges nothing: tables are made from its output.
func TestFreeAgainstNCCL(t *testing.T) {
	is := newIsland(t)
	n := is.N
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	for _, f := range freeFuncs {
		for total := units.Bytes(1 << 10); total <= islandBuffer; total *= 4 {
			part := total
			if f != coll.AllReduce {
				part = total / units.Bytes(n)
			}
			line := fmt.Sprintf("FREE %d %-14s %10d", n, f, total)
			nccl, err := is.timeNCCL(ctx, f, part)
			if err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprintf(" nccl %9.2f", nccl.Micros())
			for _, shape := range cuda.FreeShapes(f) {
				o := cuda.FreeOp{Func: f, Shape: shape, Type: coll.Float32, Red: coll.Sum, Bytes: part,
					In: is.in, Out: is.out}
				if !is.free[0].Fits(&o) {
					continue
				}
				tm, err := is.timeFree(ctx, &o)
				if err != nil {
					t.Fatal(err)
				}
				line += fmt.Sprintf(" %s %9.2f", shape, tm.Micros())
			}
			fmt.Println(line)
		}
	}
}

// deviceIters makes one replay long enough that the ranks' unequal starts
// (about 10 us) do not show.
func deviceIters(part units.Bytes) int {
	if part <= 1<<20 {
		return 200
	}
	return 20
}

func (is *island) timeNCCL(ctx context.Context, f coll.Func, part units.Bytes) (best units.Time, err error) {
	err = is.Each(func(m *Member) error {
		o := Call{Func: f, Send: is.in[m.Rank], Recv: is.out[m.Rank], Count: int64(part / 4),
			Type: coll.Float32, Size: 4, Rank: m.Rank, N: m.N}
		return is.repeat(m, &best, func() (units.Time, error) {
			return m.Time(ctx, &o, Timing{Iters: deviceIters(part), Launch: GraphRun}, is.meet)
		})
	})
	return best, err
}

func (is *island) timeFree(ctx context.Context, o *cuda.FreeOp) (best units.Time, err error) {
	err = is.Each(func(m *Member) error {
		f := is.free[m.Rank]
		if err := f.Prepare(o); err != nil {
			return err
		}
		return is.repeat(m, &best, func() (units.Time, error) {
			return m.TimeGraph(ctx, func() error { return f.Queue(o, m.stream) }, deviceIters(o.Bytes),
				is.meet)
		})
	})
	return best, err
}

// repeat measures five times; rank 0 keeps the median.
func (is *island) repeat(m *Member, out *units.Time, f func() (units.Time, error)) error {
	var all []units.Time
	for range 5 {
		t, err := f()
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	if m.Rank == 0 {
		slices.Sort(all)
		*out = all[len(all)/2]
	}
	return nil
}

package tuning_test

import (
	"bufio"
	"compress/gzip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// fields reads the numbers of a line of testdata/nccl-2.28.9-model.txt.gz.
type fields struct {
	t    *testing.T
	list []string
}

func (f *fields) word() string {
	if len(f.list) == 0 {
		f.t.Fatal("line too short")
	}
	w := f.list[0]
	f.list = f.list[1:]
	return w
}

func (f *fields) int() int {
	v, err := strconv.ParseInt(f.word(), 10, 64)
	if err != nil {
		f.t.Fatal(err)
	}
	return int(v)
}

func (f *fields) flag() bool { return f.int() != 0 }

func (f *fields) float() float32 {
	v, err := strconv.ParseFloat(f.word(), 32)
	if err != nil {
		f.t.Fatal(err)
	}
	return float32(v)
}

// question reads communicator and settings: see testdata/README.md.
func (f *fields) question() (in tuning.Input, p tuning.Params) {
	p.Rules = rules.Default()
	in.NRanks, in.NNodes, in.LocalRanks, in.MaxLocalRanks = f.int(), f.int(), f.int(), f.int()
	in.MinSM, in.MaxSM = f.int(), f.int()
	in.CPUArch, in.CPUVendor = topo.CPUArch(f.int()), topo.CPUVendor(f.int())
	in.NVSwitch, in.TreePattern = f.flag(), search.Pattern(f.int())
	in.Channels, in.NVLSChannels, in.NVLS = f.int(), f.int(), f.flag()
	c := &in.CollNet
	c.Enabled, c.Heads, c.AllGather, c.ReduceScatter = f.flag(), f.int(), f.flag(), f.flag()
	for id := range in.Graphs {
		g := &search.Graph{ID: id, NChannels: f.int(), BWIntra: units.GBps(f.float()),
			BWInter: units.GBps(f.float()), LatencyInter: f.float()}
		g.TypeIntra, g.TypeInter, g.SameChannels = topo.PathKind(f.int()), topo.PathKind(f.int()), f.int()
		in.Graphs[id] = g
	}
	for range f.int() {
		name, value := f.word(), strings.ReplaceAll(f.word(), "~", " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "NCCL_ALGO":
			p.Algo = units.Some(value)
		case "NCCL_PROTO":
			p.Proto = units.Some(value)
		case "NCCL_THREAD_THRESHOLDS":
			p.ThreadThresholds = units.Some(value)
		case "NCCL_NTHREADS":
			p.NThreads = units.Some(n)
		case "NCCL_LL128_NTHREADS":
			p.LL128NThreads = units.Some(n)
		case "NCCL_PAT_ENABLE":
			p.PATEnable = units.Some(n)
		case "NCCL_NET_OVERHEAD":
			p.NetOverheadNs = units.Some(n)
		case "NCCL_LL128_C2C":
			p.LL128C2C = units.Some(n)
		default:
			f.t.Fatalf("variable %s", name)
		}
	}
	return in, p
}

// op reads an operation as NCCL's functions take it; AllGather and Broadcast
// are counted in bytes there.
func (f *fields) op(nRanks int) tuning.Op {
	o := tuning.Op{Func: coll.Func(f.int())}
	bytes := int64(f.int())
	o.Type = coll.DataType(f.int())
	o.RedOp = [...]coll.RedOp{coll.Sum, coll.Prod, coll.Max, coll.Avg, coll.Avg}[f.int()]
	o.Pipe = f.int()
	f.int() // CollNet and NVLS for the operation follow from the rest
	f.int()
	o.Count = bytes / int64(o.Type.Size())
	if o.Func == coll.AllGather || o.Func == coll.ReduceScatter {
		o.Count /= int64(nRanks)
	}
	return o
}

// TestModelBitForBit compares with what NCCL 2.28.9's own functions computed
// for synthetic communicators that the goldens lack: uneven nodes, mixed GPUs,
// POWER and mixed CPUs, CollNet, latencies of nets, fp8, averages, and groups
// of several operations. Every bit of every figure must be equal.
func TestModelBitForBit(t *testing.T) {
	file, err := os.Open("testdata/nccl-2.28.9-model.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	cases, refused, ops := 0, 0, 0
	for lines.Scan() {
		q := &fields{t, strings.Fields(lines.Text())}
		if !lines.Scan() {
			t.Fatal("a question without an answer")
		}
		a := &fields{t, strings.Fields(lines.Text())}
		in, p := q.question()
		m, err := tuning.New(in, p)
		if err != nil {
			t.Fatal(err)
		}
		cases++
		if rc := a.int(); rc != 0 {
			t.Fatalf("case %d: NCCL failed with %d", cases, rc)
		}
		sameTable(t, cases, m, a)
		for range q.int() {
			ops++
			if !sameChoice(t, cases, m, q.op(in.NRanks), a) {
				refused++
			}
		}
	}
	t.Logf("%d communicators, %d operations, %d of them refused", cases, ops, refused)
	if cases < 100 {
		t.Errorf("%d cases", cases)
	}
}

func sameTable(t *testing.T, n int, m *tuning.Model, a *fields) {
	t.Helper()
	for f := range m.Latency {
		for al := range m.Latency[f] {
			for p := range m.Latency[f][al] {
				lat, bw := a.float(), a.float()
				if m.Latency[f][al][p] != lat || m.Bandwidth[f][al][p] != bw {
					t.Errorf("case %d: %v %v %v: latency %v, want %v; bandwidth %v, want %v", n, coll.Func(f),
						coll.Algorithm(al), coll.Protocol(p),
						m.Latency[f][al][p], lat, m.Bandwidth[f][al][p], bw)
				}
			}
		}
	}
	for al := range m.MaxThreads {
		for p := range m.MaxThreads[al] {
			nt, per := a.int(), a.int()
			if m.MaxThreads[al][p] != nt || m.ThreadThreshold[al][p] != int64(per) {
				t.Errorf("case %d: %v %v: %d threads, want %d; threshold %d, want %d", n, coll.Algorithm(al),
					coll.Protocol(p),
					m.MaxThreads[al][p], nt, m.ThreadThreshold[al][p], per)
			}
		}
	}
}

// sameChoice reports whether NCCL chose anything.
func sameChoice(t *testing.T, n int, m *tuning.Model, o tuning.Op, a *fields) bool {
	t.Helper()
	rc := a.int()
	want := tuning.Choice{Op: o, NBytes: o.NBytes(m.In.NRanks), Algo: coll.Algorithm(a.int()),
		Proto: coll.Protocol(a.int()), MaxChannels: a.int(), Warps: a.int()}
	want.TimeUs, want.Threads = a.float(), 32*want.Warps
	for al := range want.Times {
		for p := range want.Times[al] {
			want.Times[al][p] = max(tuning.Off, a.float())
		}
	}
	got, err := m.Choose(o)
	if rc != 0 {
		if e, ok := err.(*tuning.NoChoiceError); !ok || e.Code() != rc {
			t.Errorf("case %d %+v: NCCL fails with %d, we with %v", n, o, rc, err)
		}
		return false
	}
	if err != nil || got != want {
		t.Errorf("case %d: got %+v, %v; want %+v", n, got, err, want)
	}
	return true
}

package overlap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Prediction is a row with its simulated values.
type Prediction struct {
	Section   string             `json:"section"`
	Case      string             `json:"case"`
	Measured  map[string]float64 `json:"measured"`
	Simulated map[string]float64 `json:"simulated"`
}

// Machines returns the machine on which a communicator's group has its settings:
// "def", "def2" and "high" have none, "ch8" has 8 channels, "cga0" no clusters.
type Machines func(group string) (*job.Machine, error)

// Host time of PyTorch 2.11 per eager launch, in microseconds: of a single collective, and of a group of
// collectives or of sends and receives.
const (
	torchCall  = 50.0
	torchGroup = 60.0
	torchEach  = 17.0
	// torchFork is the time that events add around an operation, in microseconds: fork and join of streams in
	// a graph, or the events that time a row.
	torchFork = 4.0
	// torchBatch is the same of a batch of sends and receives.
	torchBatch = 7.0
)

// predictor simulates the rows of a table.
type predictor struct {
	ctx   context.Context
	t     *Table
	on    Machines
	alone map[string]units.Time
}

// Predict simulates every row of a table. A row with unknown words is an *Error; other errors are the
// simulator's.
func (t *Table) Predict(ctx context.Context, on Machines) ([]Prediction, error) {
	p := &predictor{ctx, t, on, map[string]units.Time{}}
	var out []Prediction
	for i := range t.Rows {
		r := &t.Rows[i]
		sim, err := p.row(r)
		var bad *Error
		switch {
		case errors.As(err, &bad): // of what the row says
			return nil, &Error{t.file, r.line, r.Case + ": " + bad.Text}
		case err != nil:
			return nil, fmt.Errorf("%s:%d: %s: %w", t.file, r.line, r.Case, err)
		}
		one := Prediction{Section: r.Section, Case: r.Case, Measured: r.Measured,
			Simulated: map[string]float64{}}
		for _, k := range r.Keys {
			if v, ok := sim[k]; ok {
				one.Simulated[k] = v
			}
		}
		out = append(out, one)
	}
	return out, nil
}

func (p *predictor) row(r *Row) (map[string]float64, error) {
	switch r.Section {
	case "solo":
		return p.solo(r)
	case "gemm":
		return p.gemm(r)
	case "two":
		return p.two(r)
	case "sr":
		return p.messages(r)
	case "group":
		return p.group(r)
	}
	return p.late(r)
}

// ints parses the numeric labels with the given indices.
func ints(labels []string, at ...int) ([]int64, error) {
	out := make([]int64, len(at))
	for i, k := range at {
		n, err := strconv.ParseInt(labels[k], 10, 64)
		if err != nil || n < 0 || n > 1<<40 {
			return nil, fault("%q is no number of bytes or calls", labels[k])
		}
		out[i] = n
	}
	return out, nil
}

// maxCalls is the largest accepted number of calls of a row.
const maxCalls = 1 << 16

// times checks a number of calls against the bound of a simulated job.
func times(n int64) (int, error) {
	if n < 1 || n > maxCalls {
		return 0, fault("%d calls; from 1 to %d", n, maxCalls)
	}
	return int(n), nil
}

// run runs a program on the machine of a group.
func (p *predictor) run(group string, b *builder) (*job.Result, error) {
	m, err := p.on(group)
	if err != nil {
		return nil, err
	}
	return m.Run(p.ctx, &b.p, job.Options{})
}

// calls returns the time that n calls take without concurrent work.
func (p *predictor) calls(group, op string, bytes int64, n int, ranks []int32) (units.Time, error) {
	key := fmt.Sprint(group, op, bytes, n, ranks)
	if t, ok := p.alone[key]; ok {
		return t, nil
	}
	b := newBuilder(p.t.World)
	if err := b.repeat(ranks, 0, op, bytes, n); err != nil {
		return 0, err
	}
	r, err := p.run(group, b)
	if err != nil {
		return 0, err
	}
	p.alone[key] = r.Elapsed()
	return r.Elapsed(), nil
}

func (p *predictor) solo(r *Row) (map[string]float64, error) {
	if err := known(r.Labels[2]); err != nil {
		return nil, err
	}
	v, err := ints(r.Labels, 1, 3)
	if err != nil {
		return nil, err
	}
	n, err := times(v[1])
	if err != nil {
		return nil, err
	}
	t, err := p.calls(r.Labels[2], r.Labels[0], v[0], n, nil)
	us := t.Micros() / float64(n)
	return map[string]float64{"gated_us": us, "graph_us": us + (torchFork+graphMore(n, us, v[0], false))/
		float64(n)}, err
}

// gemm simulates n collectives on one stream and K compute kernels on another. The collectives' stream first
// waits for an event, as PyTorch's does, so that the compute is launched first.
func (p *predictor) gemm(r *Row) (map[string]float64, error) {
	if err := known(r.Labels[2]); err != nil {
		return nil, err
	}
	v, err := ints(r.Labels, 1, 3, 5)
	if err != nil {
		return nil, err
	}
	n, err := times(v[1])
	if err != nil {
		return nil, err
	}
	k, err := times(v[2])
	if err != nil {
		return nil, err
	}
	kind := r.Labels[4]
	us, ok := p.t.Compute[kind]
	if !ok {
		return nil, fault("the table does not say how long %s takes alone (section solo)", kind)
	}
	m, err := p.on(r.Labels[2])
	if err != nil {
		return nil, err
	}
	comm0, err := p.calls(r.Labels[2], r.Labels[0], v[0], n, nil)
	if err != nil {
		return nil, err
	}
	var t, tc, total float64 // ms: collectives, compute, both
	for draw := range draws {
		b := newBuilder(p.t.World)
		b.compute(1, work(kind, int32(m.Sim.Class.Share.SMs)), units.FromMicros(us), k)
		b.scatter(draw)
		if err := b.repeat(nil, 0, r.Labels[0], v[0], n); err != nil {
			return nil, err
		}
		res, err := p.run(r.Labels[2], b)
		if err != nil {
			return nil, err
		}
		last := 0.0
		for rank := range p.t.World {
			last = max(last, ms(res.Spans[rank][k+n-1].End))
			tc += ms(res.Spans[rank][k-1].End) / float64(p.t.World) / draws
		}
		t += last / draws
		total += ms(res.Elapsed()) / draws
	}
	comp0 := us * float64(k) / 1e3
	return map[string]float64{"comm0_ms": ms(comm0), "comm_ms": t, "x": t / ms(comm0), "comp0_ms": comp0,
		"comp_ms": tc,
		"rate":    (comp0 - (tc - t)) / t, "total_ms": total, "/sum": total / (ms(comm0) + comp0),
		"graph_total_ms": total}, nil
}

func ms(t units.Time) float64 { return t.Micros() / 1e3 }

var (
	pairOf = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(AR|AG|RS|A2A) (\d+)([KMG])`)
	})
	ranksOf = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\d+)\}`) })
	opWords = map[string]string{"AR": "all_reduce", "AG": "all_gather", "RS": "reduce_scatter",
		"A2A": "alltoall"}
)

// side is one of the two parts of a row of two communicators.
type side struct {
	op    string
	bytes int64
	n     int
	sets  [][]int32 // communicators; nil ranks: all
}

// sides reads "crossing TP pairs AR 1M + DP pairs AR 1M".
func sides(r *Row, world int) ([2]side, error) {
	var out [2]side
	last := len(r.Labels) - 1
	n, err := strconv.Atoi(r.Labels[last])
	if err != nil || n < 1 || n > maxCalls {
		return out, fault("%q is no number of calls", r.Labels[last])
	}
	text := strings.Join(r.Labels[:last], " ")
	if _, after, ok := strings.Cut(text, "small: "); ok { // what comes before says it in words
		text = after
	}
	found := pairOf().FindAllStringSubmatch(text, -1)
	if len(found) != 2 {
		return out, fault("two operations are expected, as in AR 1M + AG 16M")
	}
	for i, f := range found {
		size, _ := strconv.ParseInt(f[2], 10, 32)
		out[i] = side{op: opWords[f[1]], bytes: size << map[string]int{"K": 10, "M": 20, "G": 30}[f[3]], n: n,
			sets: [][]int32{nil}}
	}
	sets := ranksOf().FindAllStringSubmatch(text, -1)
	for i := range min(len(sets), 2) {
		var ranks []int32
		for _, d := range sets[i][1] {
			if int(d-'0') >= world {
				return out, fault("{%s}: ranks are from 0 to %d", sets[i][1], world-1)
			}
			ranks = append(ranks, d-'0')
		}
		out[i].sets = [][]int32{ranks}
	}
	switch {
	case len(sets) == 2 || strings.HasPrefix(text, "same ranks"):
	case strings.HasPrefix(text, "crossing"):
		if world != 4 {
			return out, fault("crossing pairs are of 4 ranks, the table has %d", world)
		}
		out[0].sets, out[1].sets = [][]int32{{0, 1}, {2, 3}}, [][]int32{{0, 2}, {1, 3}}
	case strings.HasPrefix(text, "a=") && out[1].bytes >= 1<<20: // many small ones to a large one
		out[1].n *= 8
	case strings.HasPrefix(text, "a="):
		out[1].n *= 12
	default:
		return out, fault("of which ranks the communicators are is not known; write same ranks, crossing " +
			"TP pairs, or the ranks as {01}")
	}
	return out, nil
}

func (p *predictor) two(r *Row) (map[string]float64, error) {
	ab, err := sides(r, p.t.World)
	if err != nil {
		return nil, err
	}
	var alone [2]float64
	b := newBuilder(p.t.World)
	for i := range ab {
		own := newBuilder(p.t.World)
		for _, set := range ab[i].sets {
			if err := own.repeat(set, 0, ab[i].op, ab[i].bytes, ab[i].n); err != nil {
				return nil, err
			}
			if err := b.repeat(set, int32(i), ab[i].op, ab[i].bytes, ab[i].n); err != nil {
				return nil, err
			}
		}
		res, err := p.run("def", own)
		if err != nil {
			return nil, err
		}
		alone[i] = ms(res.Elapsed())
	}
	res, err := p.run("def", b)
	if err != nil {
		return nil, err
	}
	var end [2]float64
	for rank := range p.t.World {
		for i, s := range b.p.Lists[rank].Steps {
			end[s.Stream] = max(end[s.Stream], ms(res.Spans[rank][i].End))
		}
	}
	total := ms(res.Elapsed())
	graph := total
	for i := range ab {
		n := ab[i].n
		graph = max(graph, end[i]+graphMore(n, end[i]*1e3/float64(n), ab[i].bytes, false)/1e3)
	}
	return map[string]float64{"a_alone": alone[0], "b_alone": alone[1], "a": end[0], "b": end[1],
		"total": total,
		"/sum":  total / (alone[0] + alone[1]), "/max": total / max(alone[0], alone[1]), "graph": graph}, nil
}

// group simulates n calls of one size: separately, in one group as NCCL's planner launches it, and as one
// call of the total size.
func (p *predictor) group(r *Row) (map[string]float64, error) {
	v, err := ints(r.Labels, 1, 2)
	if err != nil {
		return nil, err
	}
	n, err := times(v[1])
	if err != nil {
		return nil, err
	}
	if v[0] > 1<<40/int64(n) {
		return nil, fault("%d calls of %d bytes are more than any memory", n, v[0])
	}
	apart, err := p.calls("def", r.Labels[0], v[0], n, nil)
	if err != nil {
		return nil, err
	}
	one, err := p.calls("def", r.Labels[0], v[0]*int64(n), 1, nil)
	if err != nil {
		return nil, err
	}
	in, err := p.grouped(r.Labels[0], v[0], n)
	if err != nil {
		return nil, err
	}
	a, o, g := apart.Micros(), one.Micros(), in.Micros()
	return map[string]float64{"separate": max(a, torchCall*float64(n)),
		"grouped": max(g, torchGroup+torchEach*float64(n)), "one": max(o, torchCall),
		"g_separate": a + torchFork + graphMore(n, a/float64(n), v[0], true), "g_grouped": g + torchFork,
		"g_one": o + torchFork}, nil
}

// grouped returns the time of n equal calls in one group.
func (p *predictor) grouped(op string, bytes int64, n int) (units.Time, error) {
	b := newBuilder(p.t.World)
	if err := b.repeat(nil, 0, op, bytes, 1); err != nil {
		return 0, err
	}
	c := &b.p.Calls[0]
	calls := slices.Repeat([]launch.Call{{Func: c.Func, Type: c.Type, Op: c.RedOp, Count: c.Count,
		InPlace: c.InPlace}}, n)
	m, err := p.on("def")
	if err != nil {
		return 0, err
	}
	return m.Group(p.ctx, calls)
}

// late simulates a collective that one rank joins late.
func (p *predictor) late(r *Row) (map[string]float64, error) {
	v, err := ints(r.Labels, 1, 3)
	if err != nil {
		return nil, err
	}
	wait, err := strconv.ParseFloat(r.Labels[5], 64)
	if err != nil || wait < 0 || wait > 1e6 || int(v[1]) >= p.t.World {
		return nil, fault("%q ms late, rank %d of %d", r.Labels[5], v[1], p.t.World)
	}
	b := newBuilder(p.t.World)
	if wait > 0 {
		b.sleep(int(v[1]), units.FromMicros(wait*1e3))
	}
	if err := b.repeat(nil, 0, r.Labels[0], v[0], 1); err != nil {
		return nil, err
	}
	res, err := p.run("def", b)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for rank, t := range res.Finish {
		out[fmt.Sprintf("rank%d", rank)] = ms(t) + torchFork/1e3
	}
	return out, nil
}

// messages simulates one round of a pattern of sends and receives.
func (p *predictor) messages(r *Row) (map[string]float64, error) {
	last := len(r.Labels) - 1
	v, err := ints(r.Labels, last)
	if err != nil {
		return nil, err
	}
	list, err := pattern(r.Labels[:last], int32(p.t.World))
	if err != nil {
		return nil, err
	}
	m, err := p.on("def")
	if err != nil {
		return nil, err
	}
	var calls []launch.Call
	ends := make([]int, p.t.World)
	for _, x := range list {
		calls = append(calls, launch.Call{Func: coll.Send, Type: coll.Int8, Count: v[0], Rank: x[0],
			Peer: x[1]},
			launch.Call{Func: coll.Recv, Type: coll.Int8, Count: v[0], Rank: x[1], Peer: x[0]})
		ends[x[0]]++
		ends[x[1]]++
	}
	most := slices.Max(ends)
	t, err := m.Group(p.ctx, calls)
	if err != nil {
		return nil, err
	}
	us := t.Micros() + torchBatch
	return map[string]float64{"eager_us": max(us, torchGroup+torchEach*float64(most)), "graph_us": us,
		"GB/s": float64(v[0]) / us / 1e3}, nil
}

// builder builds programs with one list per rank.
type builder struct {
	p    workload.Program
	sets map[string]int32
}

func newBuilder(world int) *builder {
	b := &builder{sets: map[string]int32{}}
	b.p.Of = make([]int32, world)
	for r := range b.p.Of {
		b.p.Of[r] = int32(r)
		b.p.Lists = append(b.p.Lists, workload.List{Name: fmt.Sprintf("rank%d", r)})
	}
	return b
}

// comm returns the communicator of a stream over some ranks, nil for all.
func (b *builder) comm(ranks []int32, stream int32) int32 {
	key := fmt.Sprint(stream, ranks)
	c, ok := b.sets[key]
	if !ok {
		c = int32(len(b.p.Comms))
		b.p.Comms = append(b.p.Comms, workload.Comm{Name: fmt.Sprintf("c%d", c), Ranks: ranks})
		b.sets[key] = c
	}
	return c
}

// repeat issues n calls of a size in nccl-tests' sense on a stream of each rank.
func (b *builder) repeat(ranks []int32, stream int32, op string, bytes int64, n int) error {
	f, err := coll.ParseFunc(op)
	if err != nil {
		return fault("%v", err)
	}
	if n > maxCalls {
		return fault("%d calls; at most %d", n, maxCalls)
	}
	c := b.comm(ranks, stream)
	members := int64(b.p.Comms[c].Size(len(b.p.Of)))
	count := bytes / 2
	if f != coll.AllReduce && f != coll.Broadcast && f != coll.Reduce {
		count /= members
	}
	call := int32(len(b.p.Calls))
	b.p.Calls = append(b.p.Calls, workload.Call{Comm: c, Func: f, Type: coll.BFloat16, Count: count,
		InPlace: f == coll.AllReduce})
	for i := range members {
		l := &b.p.Lists[b.p.Comms[c].Rank(int32(i))]
		for range n {
			l.Steps = append(l.Steps, workload.Step{Kind: workload.Issue, Stream: stream, Call: call})
		}
	}
	return nil
}

// compute adds n kernels to a stream of every rank.
func (b *builder) compute(stream int32, w workload.Work, t units.Time, n int) {
	b.p.Works = append(b.p.Works, w)
	for r := range b.p.Lists {
		for range n {
			b.p.Lists[r].Steps = append(b.p.Lists[r].Steps, workload.Step{Kind: workload.Compute,
				Stream: stream, Time: t, Work: int32(len(b.p.Works))})
		}
	}
}

// Kernels of compute do not take the same time twice, nor on two GPUs, so ranks come to a
// collective at different phases of them. Measured on 2 x H200: the deviation of a kernel
// of 65 us, and of matrix products between GPUs. A row is the mean of some draws.
const (
	kernelSpread = 0.02
	gpuSpread    = 0.01
	draws        = 3
)

// scatter varies the compute times by rank and by kernel, as GPUs do.
func (b *builder) scatter(draw int) {
	for r := range b.p.Lists {
		slow := 1 + gpuSpread*chance(draw, r, 0)
		for i := range b.p.Lists[r].Steps {
			if s := &b.p.Lists[r].Steps[i]; s.Kind == workload.Compute {
				s.Time = units.Time(float64(s.Time) * slow * math.Max(0.5, 1+kernelSpread*chance(draw, r,
					i+1)))
			}
		}
	}
}

// chance returns a normal deviate for an index. The deviates of a row are evenly spread: multiples of
// irrational numbers modulo 1 (a quasi-random sequence) are mapped to the normal distribution.
func chance(draw, rank, i int) float64 {
	_, u := math.Modf(0.5 + float64(float64(i)*0.6180339887498949) +
		float64(float64(rank)*0.7548776662466927) + float64(float64(draw)*0.5698402909980532))
	return math.Sqrt2 * math.Erfinv(2*math.Max(u, 1e-9)-1)
}

// sleep occupies stream 0 of a rank by a kernel of one block.
func (b *builder) sleep(rank int, t units.Time) {
	b.p.Works = append(b.p.Works, workload.Work{Name: "sleep", Blocks: 1, PerSM: 1})
	b.p.Lists[rank].Steps = append(b.p.Lists[rank].Steps, workload.Step{Kind: workload.Compute, Time: t,
		Work: int32(len(b.p.Works))})
}

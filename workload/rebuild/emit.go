package rebuild

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/kineto"
)

// Bounds of the gaps between kernels, in nanoseconds.
const (
	queuedFor = 20_000 // an operation launched so long before its turn was queued
	longGap   = 5_000  // more than this between queued kernels is no gap of the GPU
	gapless   = 1_300  // between kernels where nothing was queued (H200, CUPTI on)
	firstWork = 6_000  // from a launch to the kernel where the GPU is idle
)

// ready returns the time at which an operation could begin if it were launched: after its stream and its
// dependencies.
func (r *rank) ready(g *gpuOp) int64 {
	t := r.begin
	if g.before >= 0 {
		t = r.ops[g.before].end()
	}
	for _, d := range g.deps {
		t = max(t, r.ops[d].end())
	}
	return t
}

// timing measures the gap between queued kernels and the launch latency, and adds the gap to the times of
// kernels.
func (r *rank) timing() {
	var gaps, latencies []int64
	for i := range r.ops {
		g := &r.ops[i]
		ready := r.ready(g)
		switch d := g.start() - ready; {
		case g.graph || g.op.Class == kineto.NCCL:
		case ready-g.call.Start > queuedFor && d >= 0 && d < longGap:
			gaps = append(gaps, d)
		case ready < g.call.Start:
			latencies = append(latencies, g.start()-g.call.Start)
		}
	}
	r.gap, r.latency = gapless, firstWork
	if len(gaps) >= 10 {
		r.gap = median(gaps)
	}
	if len(latencies) >= 10 {
		r.latency = median(latencies)
	}
	for i := range r.ops {
		g := &r.ops[i]
		if g.op.Class == kineto.NCCL && len(g.comms) > 0 {
			r.gapBefore(g)
			continue
		}
		gap := r.gap
		if d := g.start() - r.ready(g); (g.graph || r.ready(g)-g.call.Start > queuedFor) && d < longGap {
			gap = max(d, 0)
		}
		g.alone += gap
	}
}

// gapBefore adds the gap between a computation and a call that was queued behind it
// on the same stream to the computation: a call has no time of its own in a program.
func (r *rank) gapBefore(g *gpuOp) {
	if g.before < 0 || len(r.ops[g.before].comms) > 0 {
		return
	}
	b := &r.ops[g.before]
	ready := r.ready(g)
	if d := g.start() - ready; ready == b.end() && (g.graph || ready-g.call.Start > queuedFor) && d > 0 &&
		d < longGap {
		b.alone += d
	}
}

// moment returns the time at which the host has launched an operation: the launch latency after the runtime
// call, but at least a gap before the operation began.
func (r *rank) moment(p *point) int64 {
	if p.kind != launchPoint {
		return p.at
	}
	g := &r.ops[p.ops[0]]
	lead := r.gap
	if len(g.comms) > 0 {
		lead = 0
	}
	return max(p.at, min(p.at+r.latency, g.start()-lead))
}

// emit writes the program: a list for each recorded rank.
func (j *job) emit() {
	j.p = &workload.Program{}
	for _, g := range j.comms {
		j.p.Comms = append(j.p.Comms, g.comm)
	}
	j.calls = callTable{p: j.p, index: map[string]int32{}}
	works := workTable{p: j.p, index: map[twinKey]int32{}}
	j.res.Origin = 1 << 62
	for _, r := range j.ranks {
		j.res.Origin = min(j.res.Origin, r.begin-r.shift)
	}
	for i, r := range j.ranks {
		works.of = map[twinKey]int32{}
		w := writer{r: r, j: j, works: &works, list: int32(i), origin: j.res.Origin + r.shift, host: -1,
			step: make([]int32, len(r.ops))}
		j.p.Lists = append(j.p.Lists, workload.List{Name: fmt.Sprintf("rank%d", r.rank)})
		w.write()
		j.p.Lists[i].Steps = w.steps
	}
}

// writer builds the list of a rank; step maps each GPU operation to its step.
type writer struct {
	r      *rank
	j      *job
	works  *workTable
	list   int32
	origin int64
	steps  []workload.Step
	step   []int32 // by operation: its step
	host   int32   // last step of the host; -1 none
	now    int64   // up to where the host's time is written
	wait   []int32 // steps that the host waits for before it goes on
}

func (w *writer) add(s workload.Step) int32 {
	w.steps = append(w.steps, s)
	return int32(len(w.steps) - 1)
}

func (w *writer) write() {
	w.now = w.origin
	for i := range w.r.points {
		p := &w.r.points[i]
		at := max(w.r.moment(p), w.now)
		if at > w.now || len(w.wait) > 0 {
			slices.Sort(w.wait)
			w.host = w.add(workload.Step{Kind: workload.Compute, Stream: workload.HostStream,
				Time: units.Time(at-w.now) * 1000,
				Deps: slices.Compact(w.wait), Recorded: ps(w.now - w.origin)})
			w.now, w.wait = at, nil
		}
		switch p.kind {
		case launchPoint:
			for _, o := range p.ops {
				w.op(o)
			}
		case syncPoint:
			for _, o := range p.deps {
				w.wait = append(w.wait, w.step[o])
			}
			w.now = max(w.now, p.resume)
		case stepPoint:
			w.j.p.Marks = append(w.j.p.Marks, workload.Mark{List: w.list, Step: int32(len(w.steps)),
				Name: p.name})
		case endPoint:
			w.j.p.Marks = append(w.j.p.Marks, workload.Mark{List: w.list, Step: int32(len(w.steps)),
				Name: "end"})
		}
	}
}

// ps converts nanoseconds to a recorded time in ps; 0 would mean unknown, so the first moment is 1 ps.
func ps(ns int64) units.Time { return max(units.Time(ns)*1000, 1) }

// op appends the step of a GPU operation.
func (w *writer) op(i int32) {
	g := &w.r.ops[i]
	var deps []int32
	if w.host >= 0 {
		deps = append(deps, w.host)
	}
	for _, d := range g.deps {
		deps = append(deps, w.step[d])
	}
	slices.Sort(deps)
	s := workload.Step{Stream: g.op.Stream, Deps: slices.Compact(deps), Recorded: ps(g.start() - w.origin)}
	if len(g.comms) == 0 {
		s.Kind, s.Time = workload.Compute, units.Time(g.alone)*1000
		s.Work = w.works.add(w.r, g)
		w.step[i] = w.add(s)
		return
	}
	s.Kind = workload.Issue
	if len(g.comms) == 1 {
		s.Call = w.j.calls.add(&g.comms[0])
		w.step[i] = w.add(s)
		return
	}
	w.add(workload.Step{Kind: workload.GroupStart})
	for k := range g.comms {
		s.Call = w.j.calls.add(&g.comms[k])
		w.step[i] = w.add(s)
	}
	w.add(workload.Step{Kind: workload.GroupEnd})
}

// callTable stores each distinct call once.
type callTable struct {
	p     *workload.Program
	index map[string]int32
}

func shapeKey(c *commCall) string {
	x := &c.call
	return fmt.Sprint(c.comm, x.Func, x.Type, x.Count, x.Root, x.Peer, x.Splits)
}

func (t *callTable) add(c *commCall) int32 {
	key := shapeKey(c)
	i, known := t.index[key]
	if !known {
		i = int32(len(t.p.Calls))
		t.index[key] = i
		x := c.call
		x.Comm = c.comm
		t.p.Calls = append(t.p.Calls, x)
	}
	return i
}

// workTable stores the demands of each distinct kernel once.
type workTable struct {
	p     *workload.Program
	index map[twinKey]int32 // by name in the program
	of    map[twinKey]int32 // by name in the recording
	names map[string]int32
}

// add returns the index + 1 of a kernel's demands; 0 for copies and fills, which occupy no SMs.
func (t *workTable) add(r *rank, g *gpuOp) int32 {
	o := g.op
	if o.Class == kineto.Memcpy || o.Class == kineto.Memset {
		return 0
	}
	k := twinKey{name: o.Name, blocks: o.Blocks, threads: o.Threads}
	if i, known := t.of[k]; known {
		return i
	}
	name := r.t.Names[o.Name]
	if t.names == nil {
		t.names = map[string]int32{}
	}
	id, known := t.names[name]
	if !known {
		id = int32(len(t.names))
		t.names[name] = id
	}
	global := twinKey{name: id, blocks: o.Blocks, threads: o.Threads}
	i, known := t.index[global]
	if !known {
		sms := int32(cmp.Or(r.t.SMs, 132))
		per := perSM(o)
		t.p.Works = append(t.p.Works, workload.Work{Name: name, Blocks: o.Blocks, PerSM: per,
			Comm: o.Class == kineto.NCCL || o.Class == kineto.Foreign, Persistent: o.Blocks > 0 && per == 1 &&
				o.Blocks <= sms})
		i = int32(len(t.p.Works))
		t.index[global] = i
	}
	t.of[k] = i
	return i
}

// perSM returns the number of CTAs of a kernel that fit on an SM, limited by threads, registers and shared
// memory of compute capability 8 and 9 (CUDA C Programming Guide, table of technical specifications); 0 for
// unknown.
func perSM(o *kineto.Op) int32 {
	if o.Threads <= 0 || o.Regs == 0 {
		return 0
	}
	n := min(2048/max(o.Threads, 1), 32)
	warps := (o.Threads + 31) / 32
	if regs := (int32(o.Regs)*32 + 255) / 256 * 256 * warps; regs > 0 {
		n = min(n, 65536/regs)
	}
	if o.Shared > 0 {
		n = min(n, 233472/(o.Shared+1024))
	}
	return max(n, 1)
}

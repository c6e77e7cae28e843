package transform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// way is the type of a message between neighbouring stages: send or receive, forward or backward.
type way uint8

const (
	recvForward way = iota
	sendForward
	recvBackward
	sendBackward
	numWays
)

// part is a range [lo, hi) of steps of a list.
type part struct{ lo, hi int }

// stage is a rank's part of an iteration of a pipeline, divided into its phases.
type stage struct {
	index, of  int
	head, tail part // before the first microbatch, after the last
	forward    []part
	backward   []part
	call       [numWays]int32 // -1 where there is no neighbour
	stream     [numWays]int32
	lag        units.Time // of the host before a receive that follows a send
	whole      part       // the iteration
}

// pipeError returns an Error about the settings schedule and microbatches.
func pipeError(hint, format string, args ...any) *VariantError {
	return &VariantError{"schedule, microbatches", fmt.Sprintf(format, args...), hint}
}

// pipeline changes the schedule or the number of microbatches of every iteration.
func pipeline(p *workload.Program, s Variant) (notes []string, err error) {
	lines, err := pipeComms(p)
	if err != nil {
		return nil, err
	}
	for _, c := range lines {
		ranks := members(p, c[0])
		order := s.Schedule
		if order == asRecorded {
			if order, err = recordedOrder(p, int(ranks[len(ranks)-1]), c, len(ranks)-1); err != nil {
				return nil, err
			}
		}
		if m := s.Microbatches; order == oneFOneB && m > 0 && m < len(ranks) {
			notes = append(notes, fmt.Sprintf("PyTorch's 1F1B refuses %d microbatches on %d stages", m,
				len(ranks)))
		}
		for index, r := range ranks {
			if err := repipe(p, int(r), c, index, order, s.Microbatches); err != nil {
				return nil, err
			}
		}
	}
	return notes, nil
}

// pipeComms returns the communicators with point-to-point messages, grouped by equal members: some frameworks
// have one for each direction.
func pipeComms(p *workload.Program) (out [][]int, err error) {
	for i := range p.Comms {
		messages := slices.ContainsFunc(p.Calls, func(c workload.Call) bool {
			return int(c.Comm) == i && variantMessage(&c)
		})
		if !messages || p.Comms[i].Kind != workload.PP && p.Comms[i].Kind != workload.NoKind {
			continue
		}
		k := slices.IndexFunc(out, func(o []int) bool {
			return slices.Equal(members(p, o[0]), members(p, i))
		})
		if k < 0 {
			out = append(out, []int{i})
		} else {
			out[k] = append(out[k], i)
		}
	}
	if out == nil {
		return nil, pipeError("give a recording of a pipeline, or make one with workload gen --pp",
			"the recording has no sends and receives between stages")
	}
	return out, nil
}

func variantMessage(c *workload.Call) bool { return c.Func == coll.Send || c.Func == coll.Recv }

// recordedOrder returns the schedule of a recording, derived from its last stage: in 1F1B that stage never
// runs two forward passes without a backward pass in between.
func recordedOrder(p *workload.Program, rank int, comms []int, index int) (PipelineSchedule, error) {
	for _, in := range intervals(p, rank) {
		st, err := takeApart(p, rank, comms, index, in)
		if err != nil {
			return 0, err
		}
		if n := len(st.forward); n > 1 && st.forward[n-1].lo < st.backward[0].lo {
			return gPipe, nil
		}
	}
	return oneFOneB, nil
}

// takeApart divides an iteration of a rank into the parts of its stage.
func takeApart(p *workload.Program, rank int, comms []int, index int, in interval) (*stage, error) {
	st := &stage{index: index, of: p.Comms[comms[0]].Size(p.Ranks()), whole: part(in)}
	d := &divider{p: p, steps: p.Lists[rank].Steps, comms: comms, st: st}
	return st, d.divide()
}

// repipe rewrites the list of a rank with another schedule.
func repipe(p *workload.Program, rank int, comms []int, index int, order PipelineSchedule,
	microbatches int) error {
	src := p.Lists[rank].Steps
	e := &emitter{rewriter: newRewriter(src), p: p, comms: comms}
	places := map[int]int{}
	done := 0
	for _, in := range intervals(p, rank) {
		for ; done < in.lo; done++ {
			e.copy(done)
		}
		places[in.lo] = len(e.out)
		st, err := takeApart(p, rank, comms, index, in)
		if err != nil {
			return err
		}
		m := len(st.forward)
		if microbatches > 0 {
			m = microbatches
		}
		e.stage(st, order, m)
		done = in.hi
		places[in.hi] = len(e.out)
	}
	for ; done < len(src); done++ {
		e.copy(done)
	}
	e.finish(p, rank, func(old int) int {
		if at, ok := places[old]; ok {
			return at
		}
		return e.following(old)
	})
	return nil
}

// divider divides an iteration of a pipeline stage into forward and backward passes.
type divider struct {
	p     *workload.Program
	steps []workload.Step
	comms []int
	st    *stage
	// segments lie between batches of messages: batches[i] follows segments[i].
	segments []part
	batches  [][]way
}

// divide finds the forward and backward passes of the iteration.
func (d *divider) divide() error {
	if err := d.batchesOf(); err != nil {
		return err
	}
	d.lags()
	var err *VariantError
	switch {
	case d.st.of < 2:
		err = pipeError("", "the group %s has one rank", d.p.Comms[d.comms[0]].Name)
	case d.st.index == 0:
		err = d.firstStage()
	case d.st.index == d.st.of-1:
		err = d.lastStage()
	default:
		d.middleStage()
	}
	if err != nil {
		return err
	}
	if n, m := len(d.st.forward), len(d.st.backward); n != m || n == 0 {
		return pipeError("give a recording of whole iterations of GPipe or 1F1B",
			"stage %d has %d forward and %d backward passes between its messages", d.st.index, n, m)
	}
	return nil
}

// batchesOf finds the messages of the iteration and groups them by launch.
func (d *divider) batchesOf() error {
	for w := range d.st.call {
		d.st.call[w] = -1
	}
	from, depth := d.st.whole.lo, 0
	var open []way
	for i := d.st.whole.lo; i < d.st.whole.hi; i++ {
		s := &d.steps[i]
		switch {
		case s.Kind == workload.GroupStart:
			depth++
		case s.Kind == workload.GroupEnd:
			depth--
		}
		mine := between(d.p, d.comms, s)
		if mine {
			w, err := d.way(s)
			if err != nil {
				return err
			}
			open = append(open, w)
		}
		if len(open) > 0 && depth == 0 {
			hi := i
			if !mine { // the group's end
				for hi > from && d.steps[hi].Kind != workload.GroupStart {
					hi--
				}
			}
			d.segments, d.batches = append(d.segments, part{from, hi}), append(d.batches, open)
			from, open = i+1, nil
		}
	}
	d.segments = append(d.segments, part{from, d.st.whole.hi})
	return nil
}

// between reports whether a step is a message between stages.
func between(p *workload.Program, comms []int, s *workload.Step) bool {
	return s.Kind == workload.Issue && variantMessage(&p.Calls[s.Call]) &&
		slices.Contains(comms, int(p.Calls[s.Call].Comm))
}

// way returns the type of the message that a step sends or receives.
func (d *divider) way(s *workload.Step) (way, error) {
	c := &d.p.Calls[s.Call]
	var w way
	switch {
	case c.Func == coll.Recv && int(c.Peer) == d.st.index-1:
		w = recvForward
	case c.Func == coll.Send && int(c.Peer) == d.st.index+1:
		w = sendForward
	case c.Func == coll.Recv && int(c.Peer) == d.st.index+1:
		w = recvBackward
	case c.Func == coll.Send && int(c.Peer) == d.st.index-1:
		w = sendBackward
	default:
		return 0, pipeError("make other pipelines with workload gen --pp",
			"stage %d has a %s with rank %d of %s, which is no neighbour (interleaved stages are not taken "+
				"apart)",
			d.st.index, c.Func.TestName(), c.Peer, d.p.Comms[d.comms[0]].Name)
	}
	if old := d.st.call[w]; old >= 0 && !d.p.Calls[old].Equal(*c) {
		return 0, pipeError("make such pipelines with workload gen --pp",
			"stage %d has messages of several sizes with one neighbour", d.st.index)
	}
	d.st.call[w], d.st.stream[w] = s.Call, s.Stream
	return w, nil
}

// before and after return the types of the messages around segment i.
func (d *divider) before(i int) []way {
	if i == 0 {
		return nil
	}
	return d.batches[i-1]
}

func (d *divider) after(i int) []way {
	if i == len(d.batches) {
		return nil
	}
	return d.batches[i]
}

// kernels counts the computations of a segment.
func (d *divider) kernels(p part) (n int) {
	for i := p.lo; i < p.hi; i++ {
		if onGPU(&d.steps[i]) {
			n++
		}
	}
	return n
}

// lags measures the host's time between a send and the receive that follows it.
func (d *divider) lags() {
	n := units.Time(0)
	for i := 1; i < len(d.segments)-1; i++ {
		if d.kernels(d.segments[i]) > 0 {
			continue
		}
		for k := d.segments[i].lo; k < d.segments[i].hi; k++ {
			d.st.lag += d.steps[k].Time
		}
		n++
	}
	if n > 0 {
		d.st.lag /= n
	}
}

// cut splits a segment after its n-th computation.
func (d *divider) cut(p part, n int) (a, b part) {
	at := p.lo
	for i := p.lo; i < p.hi && n > 0; i++ {
		if onGPU(&d.steps[i]) {
			n--
			at = i + 1
		}
	}
	return part{p.lo, at}, part{at, p.hi}
}

// middleStage divides the segments of a middle stage: a segment before a forward send is a forward pass, one
// before a backward send a backward pass.
func (d *divider) middleStage() {
	st := d.st
	for i, s := range d.segments {
		switch {
		case i == len(d.segments)-1:
			st.tail = s
		case i == 0:
			st.head = s
		case slices.Contains(d.after(i), sendForward):
			st.forward = append(st.forward, s)
		case slices.Contains(d.after(i), sendBackward):
			st.backward = append(st.backward, s)
		}
	}
}

// firstStage: a send forward follows a forward pass, before which a backward pass may
// lie; the last backward pass is followed by the optimizer. How many kernels each has
// shows where one lies alone.
func (d *divider) firstStage() *VariantError {
	st, n, b := d.st, -1, -1
	for i, s := range d.segments {
		if k := d.kernels(s); slices.Contains(d.after(i), sendForward) &&
			!slices.Contains(d.before(i), recvBackward) && k > 0 && (n < 0 || k < n) {
			n = k
		}
	}
	for i, s := range d.segments[:len(d.segments)-1] {
		if !slices.Contains(d.before(i), recvBackward) {
			continue
		}
		k := d.kernels(s)
		if slices.Contains(d.after(i), sendForward) {
			k -= n
		}
		b = max(b, k)
	}
	if n < 0 || b < 0 {
		return pipeError("record an iteration of two microbatches or more",
			"on the first stage the last backward pass cannot be separated from the optimizer")
	}
	for i, s := range d.segments {
		back, front := slices.Contains(d.before(i), recvBackward), slices.Contains(d.after(i), sendForward)
		switch k := d.kernels(s); {
		case back && front:
			x, y := d.cut(s, k-n)
			st.backward, st.forward = append(st.backward, x), append(st.forward, y)
		case front:
			x, y := d.cut(s, k-n)
			if i == 0 {
				st.head = x
			} else if k > n {
				y = s
			}
			st.forward = append(st.forward, y)
		case back && i == len(d.segments)-1:
			x, y := d.cut(s, b)
			st.backward, st.tail = append(st.backward, x), y
		case back:
			st.backward = append(st.backward, s)
		}
	}
	return nil
}

// lastStage divides the segments of the last stage: a segment after a receive begins with a forward pass, one
// before a send ends with a backward pass. The backward pass begins with the loss, whose kernels are
// recognised by name.
func (d *divider) lastStage() *VariantError {
	st := d.st
	for i, s := range d.segments {
		front, back := slices.Contains(d.before(i), recvForward), slices.Contains(d.after(i), sendBackward)
		switch {
		case i == 0:
			st.head = s
		case front && back:
			n := d.beforeBackward(s)
			if n <= 0 {
				return pipeError("record with the names of kernels (Kineto)",
					"on the last stage nothing says where the backward pass begins: no kernel of it is "+
						"named backward")
			}
			x, y := d.cut(s, n)
			st.forward, st.backward = append(st.forward, x), append(st.backward, y)
		case front:
			st.forward = append(st.forward, s)
		case back:
			st.backward = append(st.backward, s)
		case i == len(d.segments)-1:
			st.tail = s
		}
	}
	return nil
}

// beforeBackward counts the computations before the first one whose name is of a backward pass, without the
// fills just before it.
func (d *divider) beforeBackward(s part) int {
	n, fills := 0, 0
	for i := s.lo; i < s.hi; i++ {
		x := &d.steps[i]
		if !onGPU(x) {
			continue
		}
		name := ""
		if x.Work > 0 {
			name = strings.ToLower(d.p.Works[x.Work-1].Name)
		}
		switch {
		case strings.Contains(name, "backward") || strings.Contains(name, "bprop") ||
			strings.Contains(name, "_grad_") || strings.HasSuffix(name, "_bwd"):
			return n - fills
		case strings.Contains(name, "fill"):
			fills++
		default:
			fills = 0
		}
		n++
	}
	return -1
}

package transform

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// VariantError is a change that a program does not allow, or a setting that is none.
type VariantError struct {
	Setting string // as K=V
	Problem string
	Hint    string // what to do or write instead
}

// Error names the setting, the reason and the remedy.
func (e *VariantError) Error() string {
	s := e.Setting + ": " + e.Problem
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// PipelineSchedule is the order of a pipeline's microbatches.
type PipelineSchedule uint8

// Schedules: as recorded, all forward before all backward (GPipe, Huang et al. 2019),
// one forward one backward (PipeDream-flush, Narayanan et al. 2021).
const (
	asRecorded PipelineSchedule = iota
	gPipe
	oneFOneB
)

// Variant is the changes to make to a program.
type Variant struct {
	// Bucket is the capacity of DDP's buckets in bytes (bucket_cap_mb), 0: as recorded.
	Bucket units.Bytes
	// FirstBucket is the capacity of the first one. PyTorch takes 1 MiB where
	// bucket_cap_mb is not given, and since 2.4 bucket_cap_mb where it is.
	FirstBucket units.Bytes
	// NoSync leaves the reduction of gradients out, as DDP's no_sync() does.
	NoSync bool
	// Schedule and Microbatches change a pipeline; 0: as recorded.
	Schedule     PipelineSchedule
	Microbatches int
	// Skew is the share of the tokens by rank of expert groups; their sum is 1.
	Skew []float64
}

// ofFSDP is the message for FSDP: a recording shows the units as they were, but not the size of each
// parameter and when its memory is freed, which decide what else is possible.
const ofFSDP = "units, prefetch, reshard_after_forward and hybrid sharding of FSDP cannot be changed in a " +
	"recording: workload gen --fsdp 2 or 3 with --prefetch N makes such jobs, --scale dp=N makes a " +
	"recorded group larger"

// maxMicrobatches is the limit that catches typing errors.
const maxMicrobatches = 4096

// ParseVariant reads settings as K=V: bucket=25MB, no-sync, schedule=gpipe, microbatches=4,
// skew=40,30,20,10. The error is an *Error.
func ParseVariant(settings []string) (s Variant, err error) {
	for _, text := range settings {
		key, value, has := strings.Cut(text, "=")
		bad := func(problem, hint string) error { return &VariantError{text, problem, hint} }
		switch {
		case key == "no-sync" && !has:
			s.NoSync = true
		case key == "bucket" || key == "first-bucket":
			n, err := units.ParseBytes(value)
			if err != nil || n <= 0 {
				return s, bad("no size", "write bucket=25MB; MB are 2^20 bytes, as PyTorch's bucket_cap_mb")
			}
			if key == "bucket" {
				s.Bucket = n
			} else {
				s.FirstBucket = n
			}
		case key == "schedule":
			i := slices.Index([]string{"", "gpipe", "1f1b"}, value)
			if i < 1 {
				return s,
					bad("no schedule",
						"write schedule=gpipe or schedule=1f1b; workload gen makes jobs of other schedules")
			}
			s.Schedule = PipelineSchedule(i)
		case key == "microbatches":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > maxMicrobatches {
				return s, bad("no number of microbatches", fmt.Sprintf("write microbatches=4, at most %d",
					maxMicrobatches))
			}
			s.Microbatches = n
		case key == "skew":
			if s.Skew, err = shares(text, value); err != nil {
				return s, err
			}
		default:
			return s,
				bad("not known",
					"write bucket=25MB, no-sync, schedule=gpipe|1f1b, microbatches=4 or skew=40,30,20,10; "+
						ofFSDP)
		}
	}
	if s.Bucket > 0 && s.NoSync {
		return s, &VariantError{"no-sync", "there are no buckets without a reduction",
			"leave bucket= or no-sync out"}
	}
	if s.FirstBucket > 0 && s.Bucket == 0 {
		return s, &VariantError{"first-bucket", "the other buckets have no size", "add bucket=25MB"}
	}
	return s, nil
}

// shares parses "40,30,20,10", parts of any sum.
func shares(text, value string) (list []float64, err error) {
	sum := 0.0
	for part := range strings.SplitSeq(value, ",") {
		x, err := strconv.ParseFloat(part, 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			return nil, &VariantError{text, fmt.Sprintf("%q is no share", part),
				"write skew=40,30,20,10: a number for each rank of an expert group"}
		}
		list, sum = append(list, x), sum+x
	}
	if len(list) < 2 || !(sum > 0) || math.IsInf(sum, 0) {
		return nil,
			&VariantError{text, "no shares",
				"write skew=40,30,20,10: a number for each rank of an expert group"}
	}
	for i := range list {
		list[i] /= sum
	}
	return list, nil
}

// Any reports whether the Spec changes anything.
func (s *Variant) Any() bool {
	return s.Bucket > 0 || s.NoSync || s.Schedule != asRecorded || s.Microbatches > 0 || s.Skew != nil
}

// ApplyVariant returns the changed program and leaves p unchanged. notes lists what was inferred. Errors are
// of type
// *Error.
func ApplyVariant(p *workload.Program, s Variant) (q *workload.Program, notes []string, err error) {
	q = separate(p)
	if s.Schedule != asRecorded || s.Microbatches > 0 {
		// of activations there are more or fewer at a time, and other tokens in an iteration
		q.Memory, q.Model = workload.Memory{}, workload.Trained{}
	}
	if s.Skew != nil {
		if err := skew(q, s.Skew); err != nil {
			return nil, nil, err
		}
	}
	if s.Schedule != asRecorded || s.Microbatches > 0 {
		if notes, err = pipeline(q, s); err != nil {
			return nil, nil, err
		}
	}
	if s.Bucket > 0 || s.NoSync {
		note, err := buckets(q, s)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, note...)
	}
	return prune(q), notes, nil
}

// separate copies a program; each rank has a list of its own.
func separate(p *workload.Program) *workload.Program {
	q := *p
	q.Comms, q.Calls = slices.Clone(p.Comms), slices.Clone(p.Calls)
	q.Lists, q.Marks, q.Of = nil, nil, nil
	for r, of := range p.Of {
		l := p.Lists[of]
		q.Lists = append(q.Lists, workload.List{Name: l.Name, Steps: slices.Clone(l.Steps)})
		if slices.Contains(p.Of[:r], of) {
			q.Lists[r].Name = fmt.Sprintf("%s.%d", l.Name, r)
		}
		for _, m := range p.Marks {
			if m.List == of {
				q.Marks = append(q.Marks, workload.Mark{List: int32(r), Step: m.Step, Name: m.Name})
			}
		}
		q.Of = append(q.Of, int32(r))
	}
	return &q
}

// interval is an iteration: steps from lo up to hi.
type interval struct{ lo, hi int }

// intervals returns the iterations of a list, between its marks; the whole list where it
// has none.
func intervals(p *workload.Program, list int) (out []interval) {
	var at []int
	for _, m := range p.Marks {
		if int(m.List) == list {
			at = append(at, int(m.Step))
		}
	}
	slices.Sort(at)
	if len(at) < 2 {
		return []interval{{0, len(p.Lists[list].Steps)}}
	}
	for i := range at[1:] {
		out = append(out, interval{at[i], at[i+1]})
	}
	return out
}

// rewriter builds a list from the steps of another one, which are copied, inserted or omitted. Marks move
// along.
type rewriter struct {
	src  []workload.Step
	out  []workload.Step
	at   []int32   // by old step: its new index, -1 where it was left out
	via  [][]int32 // by omitted old step: the steps that replace it as a dependency
	host int32     // last step of the host in out, -1 none
	gpu  int32     // last computation of the GPU in out, -1 none
}

func newRewriter(src []workload.Step) *rewriter {
	w := &rewriter{src: src, at: make([]int32, len(src)), via: make([][]int32, len(src)), host: -1, gpu: -1}
	for i := range w.at {
		w.at[i] = -1
	}
	return w
}

func (w *rewriter) add(s workload.Step) int32 {
	slices.Sort(s.Deps)
	s.Deps = slices.Compact(s.Deps)
	if len(s.Deps) == 0 {
		s.Deps = nil
	}
	w.out = append(w.out, s)
	i := int32(len(w.out) - 1)
	if s.Kind == workload.Compute {
		if workload.OnHost(s.Stream) {
			w.host = i
		} else {
			w.gpu = i
		}
	}
	return i
}

// deps returns the new indices of an old step's dependencies.
func (w *rewriter) deps(i int) (out []int32) {
	for _, d := range w.src[i].Deps {
		if w.at[d] >= 0 {
			out = append(out, w.at[d])
		} else {
			out = append(out, w.via[d]...)
		}
	}
	return out
}

// copy appends an old step with renumbered dependencies.
func (w *rewriter) copy(i int) int32 {
	s := w.src[i]
	s.Deps = w.deps(i)
	w.at[i] = w.add(s)
	return w.at[i]
}

// drop omits a step; steps that depended on it depend on its dependencies.
func (w *rewriter) drop(i int) { w.at[i], w.via[i] = -1, w.deps(i) }

// finish replaces a list; place returns the position in the new list of a mark before an old step.
func (w *rewriter) finish(p *workload.Program, list int, place func(old int) int) {
	p.Lists[list].Steps = w.out
	for i := range p.Marks {
		if m := &p.Marks[i]; int(m.List) == list {
			m.Step = int32(place(int(m.Step)))
		}
	}
}

// following returns the position of a mark in a list that keeps its order: before the first remaining step
// that was behind the mark.
func (w *rewriter) following(old int) int {
	for i := old; i < len(w.at); i++ {
		if w.at[i] >= 0 {
			return int(w.at[i])
		}
	}
	return len(w.out)
}

// onGPU reports whether a step computes on the GPU.
func onGPU(s *workload.Step) bool { return s.Kind == workload.Compute && !workload.OnHost(s.Stream) }

// members returns the job's ranks of a communicator.
func members(p *workload.Program, comm int) (out []int32) {
	c := &p.Comms[comm]
	for i := range int32(c.Size(p.Ranks())) {
		out = append(out, c.Rank(i))
	}
	return out
}

// callTable adds calls to the program, each distinct one once.
type callTable struct {
	p     *workload.Program
	first int
}

func (t *callTable) add(c workload.Call) int32 {
	for i := t.first; i < len(t.p.Calls); i++ {
		if t.p.Calls[i].Equal(c) {
			return int32(i)
		}
	}
	t.p.Calls = append(t.p.Calls, c)
	return int32(len(t.p.Calls) - 1)
}

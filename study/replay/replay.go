package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/transform"
)

// Options are the changes to a job before it runs.
type Options struct {
	Fidelity job.Fidelity
	// Host multiplies the host's time: 1 as recorded, 0 none.
	Host float64
	// Hosts are factors by list instead, as Unprofiled estimates them; nil for Host.
	Hosts []float64
	// Slow is by how much longer the compute of a rank takes.
	Slow map[int]float64
	// Replicas is the size of data parallel groups, 0: as recorded.
	Replicas int
	// At is the place of each rank of the job, where Place has put them elsewhere; nil
	// for its own.
	At []int32
	// Observe records queues and rates of a network of packets, for a trace.
	Observe bool
	// Quick omits the lower bounds of an iteration.
	Quick bool
}

// Report is the simulated times of a job in microseconds, means over ranks; compute, exposed communication
// and host are per iteration.
type Report struct {
	IterationUs float64  `json:"iterationUs"`
	RecordedUs  *float64 `json:"recordedUs"`
	Steps       []Step   `json:"steps"`
	ComputeUs   float64  `json:"computeUs"`
	ExposedUs   float64  `json:"exposedUs"`
	HostUs      float64  `json:"hostUs"`
	// CommUs is the time with a communication kernel on the GPU, LateUs the part of it in which a kernel
	// waited to begin.
	CommUs float64 `json:"commUs"`
	LateUs float64 `json:"lateUs"`
	// BubbleUs is the part of ExposedUs in which communication kernels waited for other ranks, IdleUs the
	// part of HostUs in which the host was idle too.
	BubbleUs float64 `json:"bubbleUs"`
	IdleUs   float64 `json:"idleUs"`
	// BoundUs is a lower bound of the iteration's time: the largest of Bounds.
	BoundUs   float64 `json:"boundUs"`
	Bounds    Bounds  `json:"bounds"`
	WorstRank int     `json:"worstRank"` // with the most compute
	// Limit is what limits an iteration: gpu, host, or "gpu or host" if the estimate does not decide it.
	// HostAloneUs is that estimate: the time of the busiest host without profiler; null if no profiler
	// recorded the job.
	Limit       string   `json:"limit"`
	HostAloneUs *float64 `json:"hostAloneUs"`
	Groups      []Group  `json:"groups"`
	Calls       []Call   `json:"calls"`
	ByRank      []Rank   `json:"byRank"`
	Path        []Share  `json:"criticalPath"` // the longest share first
	// RecordedAs describes what RecordedUs was measured on if that is not what was simulated: another machine
	// or host. The two are then not comparable.
	RecordedAs string           `json:"recordedAs,omitempty"`
	GPU        *transform.OnGPU `json:"gpu,omitempty"`
	Ideal      []Ideal          `json:"ideal,omitempty"`
	// Memory is the estimated memory use of the fullest GPU of a generated job; null if it is unknown.
	Memory *workload.MemoryUse `json:"memoryBytesPerGpu,omitempty"`
	*Training
	Notes []string `json:"notes"`

	Ranks    int    `json:"ranks"`
	Fidelity string `json:"fidelity"`
	Host     string `json:"host"`

	made   *workload.Program
	period float64 // time from one iteration to the next, in microseconds
}

// Step is one iteration with its simulated and recorded time; null without a recording.
type Step struct {
	Name       string   `json:"name"`
	Us         float64  `json:"us"`
	RecordedUs *float64 `json:"recordedUs"`
}

// Group is the times of one communicator per iteration.
type Group struct {
	Name         string  `json:"name"`
	Kind         string  `json:"kind"`
	Ranks        int     `json:"ranks"`
	Calls        float64 `json:"calls"`
	BytesPerRank float64 `json:"bytesPerRank"`
	BusyUs       float64 `json:"busyUs"`
	ExposedUs    float64 `json:"exposedUs"`
}

// Call is the calls of one operation and size on a communicator. Us is the time of one in the job from the
// begin of its last member; AloneUs its time without concurrent work.
type Call struct {
	Group      string   `json:"group"`
	Func       string   `json:"func"`
	Bytes      int64    `json:"bytes"`
	Times      int      `json:"times"`
	RecordedUs *float64 `json:"recordedUs"`
	Us         float64  `json:"us"`
	AloneUs    float64  `json:"aloneUs"`
	Algo       string   `json:"algo,omitempty"`
	Proto      string   `json:"proto,omitempty"`
}

// Change applies the Options to a program.
func Change(p *workload.Program, o Options) (*workload.Program, error) {
	var err error
	switch {
	case o.Hosts != nil:
		p, err = transform.Hosts(p, o.Hosts)
	case o.Host != 1:
		p, err = transform.Host(p, o.Host)
	}
	if err != nil {
		return nil, err
	}
	if o.Replicas > 0 {
		if p, err = transform.DataParallel(p, o.Replicas); err != nil {
			return nil, err
		}
	}
	if len(o.Slow) > 0 {
		q := *p
		q.Factor = make([]float64, p.Ranks())
		for r := range q.Factor {
			q.Factor[r] = p.FactorOf(r)
		}
		for r, f := range o.Slow { //lint:sorted each rank by itself
			if r < 0 || r >= p.Ranks() || f < 0.01 || f > 1000 {
				return nil, &transform.Error{Problem: fmt.Sprintf("rank %d slower by %g", r, f),
					Hint: fmt.Sprintf("write a rank from 0 to %d and a factor from 0.01 to 1000, 3=1.2",
						p.Ranks()-1)}
			}
			q.Factor[r] *= f
		}
		p = &q
	}
	return p, nil
}

// Run runs a job that Change has made and reports it.
func Run(ctx context.Context, j *load.Job, p *workload.Program, m *job.Machine, o Options) (*Report,
	*job.Result, error) {
	res, err := m.Run(ctx, p, job.Options{Fidelity: o.Fidelity, Observe: o.Observe})
	if err != nil {
		return nil, nil, err
	}
	r := Summary(j, res, o)
	if !o.Quick {
		err = r.bounds(ctx, p, m, res, o)
	}
	r.extend(res)
	return r, res, err
}

// Summary returns the report of a job that has run.
func Summary(j *load.Job, res *job.Result, o Options) *Report {
	r := &Report{made: res.Program, Ranks: res.Program.Ranks(), Fidelity: o.Fidelity.String(),
		Host: o.hostWord(), Notes: append(slices.Clone(j.Notes), res.Notes...)}
	r.steps(j, res, o)
	line := timeline.Of(res)
	r.ranks(res, line, o.At)
	r.groups(res)
	r.calls(res, line)
	r.limit(j, o)
	if r.Notes == nil {
		r.Notes = []string{}
	}
	return r
}

func (o *Options) hostWord() string {
	switch {
	case o.Hosts != nil:
		return "unprofiled"
	case o.Host == 1:
		return "recorded"
	case o.Host == 0:
		return "ideal"
	}
	return fmt.Sprintf("%g", o.Host)
}

func us(t units.Time) float64 { return float64(t/1000) / 1000 }

// steps sets the times of the iterations.
func (r *Report) steps(j *load.Job, res *job.Result, o Options) {
	names, sums := iterations(res, o)
	recorded := 0.0
	for i, s := range sums {
		step := Step{Name: names[i], Us: s}
		if j.Rebuilt != nil && i < len(j.Rebuilt.Steps) && o.Replicas == 0 {
			v := us(j.Rebuilt.Steps[i].Mean)
			step.RecordedUs = &v
			recorded += v / float64(len(sums))
		}
		r.Steps = append(r.Steps, step)
		r.IterationUs += s / float64(len(sums))
	}
	if recorded > 0 {
		r.RecordedUs = &recorded
	}
}

// iterations returns the times between the marks, means over ranks, in microseconds. With host time an
// iteration goes from mark to mark of the host, as the profiler measures it. Without it the host runs ahead
// of the GPU, and an iteration ends with its last work on the GPU. A job without marks is one iteration.
func iterations(res *job.Result, o Options) (names []string, sums []float64) {
	names, sums = between(res.Program, o, func(rank, step int) units.Time {
		return res.Spans[rank][step].End
	})
	if len(sums) == 0 {
		return []string{"job"}, []float64{us(res.Elapsed())}
	}
	return names, sums
}

// between returns the times between the marks of a program, given the end times of its steps; none without
// marks.
func between(p *workload.Program, o Options, end func(rank, step int) units.Time) (names []string,
	sums []float64) {
	gpu := o.Host == 0 && o.Hosts == nil || !hosted(p)
	byList := make([][]workload.Mark, len(p.Lists))
	for _, m := range p.Marks {
		byList[m.List] = append(byList[m.List], m)
	}
	for i := range byList {
		slices.SortStableFunc(byList[i], func(a, b workload.Mark) int { return cmp.Compare(a.Step, b.Step) })
	}
	for rank, list := range p.Of {
		marks := byList[list]
		prev := units.Time(-1)
		for i, m := range marks {
			at := moment(p, rank, int(m.Step), gpu, end)
			if i > 0 {
				if len(sums) < i {
					sums, names = append(sums, 0), append(names, marks[i-1].Name)
				}
				sums[i-1] += us(max(at-prev, 0)) / float64(len(p.Of))
			}
			prev = at
		}
	}
	return names, sums
}

// hosted reports whether a program has steps of host threads.
func hosted(p *workload.Program) bool {
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			if workload.OnHost(p.Lists[i].Steps[k].Stream) {
				return true
			}
		}
	}
	return false
}

// moment returns the time at which a rank reaches a position of its list: its host, or the end of all its GPU
// work before that position.
func moment(p *workload.Program, rank, step int, gpu bool, end func(rank, step int) units.Time) units.Time {
	steps := p.Lists[p.Of[rank]].Steps
	at := units.Time(0)
	for s := step - 1; s >= 0; s-- {
		switch onHost := workload.OnHost(steps[s].Stream); {
		case gpu && !onHost && (steps[s].Kind == workload.Compute || steps[s].Kind == workload.Issue):
			at = max(at, end(rank, s))
		case !gpu && onHost:
			return end(rank, s)
		}
	}
	return at
}

// ranks sums up how ranks spend their time. at is the place of each rank.
func (r *Report) ranks(res *job.Result, t *timeline.Timeline, at []int32) {
	n, worst := float64(res.Program.Ranks()), units.Time(-1)
	steps := float64(len(r.Steps))
	for rank := range res.Program.Of {
		place := rank
		if at != nil {
			place = int(at[rank])
		}
		s, a := res.Rank(place), t.Account(place)
		r.ComputeUs += us(s.Compute) / steps / n
		r.ExposedUs += us(s.Exposed) / steps / n
		r.CommUs += us(s.Comm) / steps / n
		r.LateUs += us(s.Late) / steps / n
		x := Rank{Rank: rank, ComputeUs: us(a.Compute) / steps, MovingUs: us(a.Moving) / steps,
			BubbleUs: us(a.Bubble) / steps, HostUs: us(a.Host) / steps, IdleUs: us(a.Idle) / steps}
		r.BubbleUs += x.BubbleUs / n
		r.IdleUs += x.IdleUs / n
		r.ByRank = append(r.ByRank, x)
		if s.Compute > worst {
			worst, r.WorstRank = s.Compute, rank
		}
	}
	r.HostUs = max(r.IterationUs-r.ComputeUs-r.ExposedUs, 0)
	r.Path = []Share{}
	for _, s := range t.Shares(t.Path()) {
		r.Path = append(r.Path, Share{What: what(res.Program, s), Us: us(s.Time) / steps})
	}
}

// groups sets the statistics of communicators.
func (r *Report) groups(res *job.Result) {
	n := float64(len(r.Steps))
	for i := range res.Program.Comms {
		c, s := &res.Program.Comms[i], res.Comm(i)
		if s.Calls == 0 {
			continue
		}
		r.Groups = append(r.Groups, Group{Name: c.Name, Kind: c.Kind.String(),
			Ranks: c.Size(res.Program.Ranks()), Calls: float64(s.Calls) / n,
			BytesPerRank: float64(s.Bytes) / n, BusyUs: us(s.Busy) / n, ExposedUs: us(s.Exposed) / n})
	}
	slices.SortStableFunc(r.Groups, func(a, b Group) int { return cmp.Compare(b.ExposedUs, a.ExposedUs) })
	if r.Groups == nil {
		r.Groups = []Group{}
	}
}

// instance is one execution of a collective: since when its last member was there, and
// when its first member was through.
type instance struct {
	call       int32
	begin, end units.Time
}

// calls sums up the calls of one communicator, operation and size. A message takes the time of its receiver
// from the moment when both sides have begun.
func (r *Report) calls(res *job.Result, t *timeline.Timeline) {
	p := res.Program
	known := map[[2]int]int{} // by communicator and number of the collective on it
	var list []instance
	seen := make([]int, len(p.Comms))
	for rank, of := range p.Of {
		clear(seen)
		for s := range p.Lists[of].Steps {
			st := &p.Lists[of].Steps[s]
			if st.Kind != workload.Issue {
				continue
			}
			call, sp := &p.Calls[st.Call], res.Spans[rank][s]
			if call.Func == coll.Send || call.Func == coll.Recv {
				if call.Func == coll.Recv {
					list = append(list, instance{st.Call, t.Met(rank, s), sp.End})
				}
				continue
			}
			key := [2]int{int(call.Comm), seen[call.Comm]}
			seen[call.Comm]++
			i, ok := known[key]
			if !ok {
				known[key] = len(list)
				list = append(list, instance{st.Call, sp.Begin, sp.End})
				continue
			}
			list[i].begin, list[i].end = max(list[i].begin, sp.Begin), min(list[i].end, sp.End)
		}
	}
	r.Calls = sum(res, list)
}

// sum adds up the instances of equal calls.
func sum(res *job.Result, list []instance) []Call {
	type key struct {
		group, fn string
		bytes     int64
	}
	at, out := map[key]int{}, []Call{}
	recorded := map[key]float64{}
	for _, x := range list {
		c := &res.Program.Calls[x.call]
		k := key{res.Program.Comms[c.Comm].Name, c.Func.TestName(), int64(c.Bytes())}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			made := &res.Calls[x.call]
			row := Call{Group: k.group, Func: k.fn, Bytes: k.bytes, AloneUs: us(made.Alone)}
			if made.Channels > 0 && !c.Func.IsP2P() {
				row.Algo, row.Proto = made.Algo.String(), made.Proto.String()
			}
			out = append(out, row)
		}
		out[i].Times++
		out[i].Us += us(max(x.end-x.begin, 0))
		recorded[k] += us(c.Recorded)
	}
	for k, i := range at { //lint:sorted each row by itself
		n := float64(out[i].Times)
		out[i].Us /= n
		if v := recorded[k] / n; v > 0 {
			out[i].RecordedUs = &v
		}
	}
	slices.SortStableFunc(out, func(a, b Call) int {
		return cmp.Compare(b.Us*float64(b.Times), a.Us*float64(a.Times))
	})
	return out
}

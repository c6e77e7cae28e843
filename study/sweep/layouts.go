package sweep

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/gen"
)

// Layouts counts the points of a search over trainings by outcome: memory is checked first, then lower bounds
// of an iteration's time, and the rest is simulated.
type Layouts struct {
	Illegal int `json:"illegal"` // cannot be divided so
	Unfit   int `json:"unfit"`   // do not fit into a GPU's memory
	Beaten  int `json:"beaten"`  // take at least what the best five of their machine were simulated to take
	Open    int `json:"open"`    // were not tried, and might be faster
}

// layout is a point of a search over trainings.
type layout struct {
	job
	config gen.Config
	links  gen.Links
	least  float64 // lower bound of an iteration's time, in microseconds
	known  int     // source of least: 0 compute of a stage, 1 pipeline of stages, 2 simulated or skipped
	err    error
}

// layouts simulates the trainings that may be among the five fastest of their machine, the most promising
// first, until no other can be faster or the budget is used up. The budget is divided equally among machines.
func (x *searcher) layouts(ctx context.Context, w *worker) error {
	begun := time.Now()
	workers := cmpOr(x.Jobs, runtime.GOMAXPROCS(0))
	all := make([]layout, len(x.jobs))
	machines := make([]string, len(x.jobs))
	parallel.Each(workers, len(x.jobs), func(i int) {
		if ctx.Err() == nil {
			all[i].job = x.jobs[i]
			machines[i], all[i].err = x.first(w, &all[i])
		}
	})
	x.fit, x.machines = &Layouts{}, map[Key]string{}
	byMachine := map[string][]*layout{}
	var order []string
	for i := range all {
		l := &all[i]
		var illegal *gen.Error
		switch {
		case errors.As(l.err, &illegal) && illegal.Option != "gpu":
			x.fit.Illegal++
		case errors.Is(l.err, errUnfit):
			x.fit.Unfit++
		case l.err != nil:
			return l.err
		default:
			if byMachine[machines[i]] == nil {
				order = append(order, machines[i])
			}
			byMachine[machines[i]] = append(byMachine[machines[i]], l)
			x.machines[l.key] = machines[i]
		}
	}
	for i, m := range order {
		budget := (x.Points - len(x.tried)) / (len(order) - i)
		if x.MaxTime > 0 && time.Since(begun) > x.MaxTime {
			return errLeftOver
		}
		if err := x.best(ctx, w, byMachine[m], budget, workers); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// byTime is the goal of a search over trainings, an iteration's time.
const byTime = "time_us"

// bestOf is the number of trainings that are found per machine.
const bestOf = 5

var errUnfit = errors.New("it does not fit")

// first checks whether a training is valid and fits into memory, and sets a lower bound of its time from the
// compute of a stage.
func (x *searcher) first(w *worker, l *layout) (machine string, err error) {
	p, _, err := x.Spec.point(l.index)
	if err != nil {
		return "", err
	}
	if machine, err = machineKey(&p.Spec); err != nil {
		return "", err
	}
	at, err := w.machine(&p.Spec)
	if err != nil {
		return "", err
	}
	if l.config, err = at.site.Training(&p.Spec); err != nil {
		return "", err
	}
	held, err := l.config.Memory()
	if err != nil {
		return "", err
	}
	if held.Total() > l.config.GPU.Capacity {
		return "", errUnfit
	}
	l.links = linksOf(at.site, &p.Spec)
	l.least, err = computes(&l.config, l.links)
	return machine, err
}

// linksOf returns the bandwidths between the GPUs of a machine.
func linksOf(site *scenario.Site, s *scenario.Spec) gen.Links {
	of, _ := site.GPU()
	c := site.Cluster
	l := gen.Links{Near: of.Link * 1e9, Domain: max(c.NRanks()/max(c.NHosts(), 1), 1), Far: math.Inf(1)}
	l.Domain *= max(s.Machine.NVLinkDomain, 1)
	if n := len(c.Host(0).Systems[0].Of(topo.NET)); n > 0 && c.NHosts() > 1 {
		sum := 0.0
		for i := range n {
			sum += float64(c.Port(c.PortOf(0, i)).BW)
		}
		l.Far = sum * 1e9 / float64(c.Rank(1, 0))
	}
	return l
}

// computes returns the compute time of the busiest stage in an iteration, in microseconds, a lower bound.
func computes(c *gen.Config, l gen.Links) (most float64, err error) {
	var sums [2][]units.Time
	for i := range sums {
		p, err := c.Stages(l, i+1)
		if err != nil {
			return 0, err
		}
		for k := range p.Lists {
			sum := units.Time(0)
			for _, s := range p.Lists[k].Steps {
				if s.Kind == workload.Compute && s.Stream == 0 {
					sum += s.Time
				}
			}
			sums[i] = append(sums[i], sum)
		}
	}
	for k := range sums[0] {
		most = max(most, us(sums[0][k])+float64(c.Microbatches()-1)*us(sums[1][k]-sums[0][k]))
	}
	return most, nil
}

// pipeline returns a lower bound of an iteration's time with the calls of its stages, in microseconds; for
// many microbatches it is extrapolated from two runs with few.
func pipeline(ctx context.Context, c *gen.Config, l gen.Links) (float64, error) {
	m, unit := c.Microbatches(), max(c.PP, 2)
	var took []float64
	for _, n := range []int{min(m, unit), min(m, 2*unit)} {
		p, err := c.Stages(l, n)
		if err != nil {
			return 0, err
		}
		r, err := streams.Run(ctx, streams.Apart(p, streams.Recorded, 32<<20))
		if err != nil {
			return 0, err
		}
		took = append(took, us(r.Elapsed()))
	}
	return took[1] + (took[1]-took[0])*float64(max(m-2*unit, 0))/float64(unit), nil
}

// best simulates trainings of a machine until none of the others can be among its best, budget at most.
func (x *searcher) best(ctx context.Context, w *worker, list []*layout, budget, workers int) error {
	done, err := x.finished(x.Dir)
	if err != nil {
		return err
	}
	var times []float64 // of those that were simulated
	enough := math.Inf(1)
	for ctx.Err() == nil {
		slices.SortFunc(list, func(a, b *layout) int {
			return cmp.Or(cmp.Compare(a.known/2, b.known/2), cmp.Compare(a.least, b.least),
				cmp.Compare(a.key, b.key))
		})
		batch := list[:min(workers, len(list))]
		for i, l := range batch {
			if l.known == 2 || l.least >= enough {
				batch = batch[:i]
				break
			}
		}
		if len(batch) == 0 || budget <= 0 {
			break
		}
		var run, learn []job
		for _, l := range batch {
			if l.known == 1 && budget > 0 {
				budget--
				l.known, x.tried[l.key] = 2, true
				if learn = append(learn, l.job); !done[l.key] {
					run = append(run, l.job)
				}
			}
		}
		parallel.Each(workers, len(batch), func(i int) {
			if l := batch[i]; l.known == 0 {
				l.known = 1
				var least float64
				least, l.err = pipeline(ctx, &l.config, l.links)
				l.least = max(l.least, least)
			}
		})
		for _, l := range batch {
			if l.err != nil {
				return l.err
			}
		}
		if len(learn) == 0 {
			continue
		}
		if len(run) > 0 {
			if err := w.all(ctx, run); err != nil {
				return err
			}
		}
		if err := x.learn(learn); err != nil {
			return err
		}
		for _, j := range learn {
			if t := x.values[j.key]; t != nil {
				times = append(times, t.TimeUs)
			}
		}
		if slices.Sort(times); len(times) >= bestOf {
			enough = times[bestOf-1]
		}
	}
	x.rest(list, enough)
	return ctx.Err()
}

// rest counts the trainings that were not simulated.
func (x *searcher) rest(list []*layout, enough float64) {
	for _, l := range list {
		if l.known < 2 && l.least >= enough {
			x.fit.Beaten++
		} else if l.known < 2 {
			x.fit.Open++
		}
	}
}

// training reads the figures of a training from a row.
func (t *Tried) training(row map[string]any) {
	gpus, _ := row["ranks"].(float64)
	held, _ := row["memory_bytes"].(float64)
	t.GPUs, t.MemoryBytes = int(gpus), units.Bytes(held)
	t.TokensPerSecond, _ = row["tokens_s_gpu"].(float64)
}

// rate returns the tokens per second of all GPUs.
func (t *Tried) rate() float64 { return t.TokensPerSecond * float64(t.GPUs) }

// trainings sets the best trainings of each machine, and those with more tokens per second than any with as
// many GPUs or fewer.
func (x *searcher) trainings(f *Found, best []*Tried) {
	of := map[string]int{}
	for _, t := range best {
		if m := x.machines[t.key]; of[m] < bestOf {
			of[m]++
			f.Top = append(f.Top, *t)
		}
	}
	slices.SortStableFunc(best, func(a, b *Tried) int {
		return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(b.rate(), a.rate()))
	})
	for _, t := range best {
		if n := len(f.Front); n == 0 || t.rate() > f.Front[n-1].rate() {
			f.Front = append(f.Front, *t)
		}
	}
}

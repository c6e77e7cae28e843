package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/gen"
)

// Search looks for the point of a sweep with the least goal, within a budget.
//
// It is a bandit by successive halving: a round runs some points; of all that were run the
// best half of a round's number survive, and the next round runs neighbours of theirs,
// points that differ in one factor, and for a quarter points drawn anew. (Jamieson and
// Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization,
// AISTATS 2016, halve a fixed set by growing budgets; here the set is renewed, because a
// point costs the same each time.) The same seed tries the same points, however many
// processors there are and wherever it was interrupted: what has a result is not run again.
type Search struct {
	*Run
	Goal   string // an expression of columns, summed over a point's rows; the least is best
	Points int    // tried at most
	Round  int    // points a round, 0: a sixth of Points, 4 to 32
	Seed   uint64
}

// Found is the result of a Search.
type Found struct {
	Goal   string `json:"goal"`
	Points int    `json:"points"` // of the sweep
	Tried  int    `json:"tried"`
	Failed int    `json:"failed"`
	Rounds int    `json:"rounds"`
	Best   *Tried `json:"best"`
	// Front are the points that no tried one beats both in USD an hour and in time; without
	// prices it has one, the fastest.
	Front []Tried `json:"front"`
	// CPU is the processor time used, in seconds; Exhaustive is the estimate for all points, from the mean of
	// those tried.
	CPU float64 `json:"cpu_s"`
	*Layouts
	// Top are the best points of each machine of a search over trainings, five at most.
	Top        []Tried `json:"top,omitempty"`
	Exhaustive float64 `json:"exhaustive_s"`
}

// Tried is a simulated point with its results.
type Tried struct {
	Point  json.RawMessage `json:"point"`
	Value  float64         `json:"value"`   // of the goal
	TimeUs float64         `json:"time_us"` // sum over its rows
	Rate   float64         `json:"usd_h,omitempty"`
	// GPUs, TokensPerSecond (per GPU) and MemoryBytes are those of a training.
	GPUs            int         `json:"gpus,omitempty"`
	TokensPerSecond float64     `json:"tokensPerSecondPerGpu,omitempty"`
	MemoryBytes     units.Bytes `json:"memoryBytes,omitempty"`
	key             Key
}

// searcher is the state of a Search: the points by key, those tried with their values, and the random
// generator.
type searcher struct {
	*Search
	jobs   []job
	at     map[int]int // index of a combination → jobs
	values map[Key]*Tried
	tried  map[Key]bool
	rng    *rand.Rand
	failed int
	cpu    float64
	fit    *Layouts // of a search over trainings
	// machines maps the trainings that fit to their machines.
	machines map[Key]string
}

// Do searches. If MaxTime ends first, it returns what was found and an error of kind fail.LeftOver.
func (s *Search) Do(ctx context.Context) (*Found, error) {
	all, _, err := s.keys(ctx)
	if err != nil {
		return nil, err
	}
	m, err := s.manifest(all)
	if err != nil {
		return nil, err
	}
	if err := begin(s.Dir, m, s.Spec.Text); err != nil {
		return nil, err
	}
	x := &searcher{Search: s, jobs: all, at: map[int]int{}, values: map[Key]*Tried{}, tried: map[Key]bool{},
		rng: rand.New(rand.NewPCG(s.Seed, 24))}
	for i, j := range all {
		x.at[j.index] = i
	}
	w, err := s.worker(min(s.Points, len(all)))
	if err != nil {
		return nil, err
	}
	rounds := 0
	if s.Spec.Base.Workload.Train != (gen.Request{}) {
		if s.Goal != byTime { // layouts are skipped by lower bounds of their time
			return nil, fail.Usage("--goal %s: a search over trainings finds the fastest; write --goal %s, "+
				"and rank what it simulated with sweep show", s.Goal, byTime)
		}
		err = x.layouts(ctx, w)
	} else {
		rounds, err = x.rounds(ctx, w)
	}
	if err := errors.Join(err, w.file.close()); err != nil && !leftOver(err) {
		return nil, err
	}
	found := x.found()
	found.Rounds = rounds
	return found, err
}

func leftOver(err error) bool {
	var e *fail.Error
	return errors.As(err, &e) && e.Kind == fail.LeftOver
}

// rounds simulates rounds of points until the budget is used up.
func (x *searcher) rounds(ctx context.Context, w *worker) (n int, err error) {
	begun, limit := time.Now(), x.MaxTime
	size := x.Round
	if size <= 0 {
		size = max(4, min(32, x.Points/6))
	}
	for ; len(x.tried) < min(x.Points, len(x.jobs)); n++ {
		want := min(size, x.Points-len(x.tried))
		batch := x.propose(want, size/2)
		done, err := x.finished(x.Dir)
		if err != nil {
			return n, err
		}
		left := slices.DeleteFunc(slices.Clone(batch), func(j job) bool { return done[j.key] })
		if limit > 0 {
			if x.MaxTime = limit - time.Since(begun); x.MaxTime <= 0 {
				return n, errLeftOver
			}
		}
		err = w.all(ctx, left)
		if e := x.learn(batch); e != nil {
			return n, e
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// propose picks untried points: neighbours of the best, and a quarter by chance (all in
// the first round).
func (x *searcher) propose(want, survivors int) []job {
	var out []job
	take := func(i int) {
		if j := x.jobs[i]; !x.tried[j.key] && len(out) < want {
			x.tried[j.key] = true
			out = append(out, j)
		}
	}
	best := x.ranked()
	for _, t := range best[:min(survivors, len(best))] {
		if len(out) >= want-want/4 {
			break
		}
		near := x.neighbours(t.key)
		x.rng.Shuffle(len(near), func(i, k int) { near[i], near[k] = near[k], near[i] })
		// A good point must not take the whole round.
		for _, i := range near[:min(len(near), max(1, want/2))] {
			take(i)
		}
	}
	for _, i := range x.rng.Perm(len(x.jobs)) {
		take(i)
	}
	return out
}

// neighbours returns the untried points that differ from one in a single factor.
func (x *searcher) neighbours(k Key) []int {
	at := slices.IndexFunc(x.jobs, func(j job) bool { return j.key == k })
	index, stride := x.jobs[at].index, 1
	var out []int
	for f := len(x.Spec.Factors) - 1; f >= 0; f-- {
		n := len(x.Spec.Factors[f].Choices)
		own := index / stride % n
		for c := range n {
			if i, ok := x.at[index+(c-own)*stride]; ok && c != own && !x.tried[x.jobs[i].key] {
				out = append(out, i)
			}
		}
		stride *= n
	}
	return out
}

// ranked returns the tried points, the best first, without those that failed.
func (x *searcher) ranked() []*Tried {
	var out []*Tried
	for _, t := range x.values { //lint:sorted sorted below
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *Tried) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.key, b.key))
	})
	return out
}

// learn reads the results of a round: goal values, CPU time and failures. Points that were not run for lack
// of time become untried again.
func (x *searcher) learn(batch []job) error {
	m, err := Merge(x.Dir)
	if err != nil {
		return err
	}
	m.prices = x.Spec.Prices
	goal, err := NewExpr(x.Goal, m.ColumnNames())
	if err != nil {
		return err
	}
	mine := map[Key]bool{}
	for _, j := range batch {
		mine[j.key] = true
	}
	seen := 0
	for i := range m.Lines {
		if l := &m.Lines[i]; mine[l.Key] {
			seen++
			if x.cpu += l.CPU; l.Error != "" {
				x.failed++
			}
		}
	}
	if seen < len(batch) { // the time was over
		for _, j := range batch {
			if !slices.ContainsFunc(m.Lines, func(l Line) bool { return l.Key == j.key }) {
				delete(x.tried, j.key)
			}
		}
	}
	return m.Each(func(r *Record, row map[string]any) error {
		if !mine[r.Key] {
			return nil
		}
		v, err := goal.Value(row)
		if err != nil {
			return err
		}
		f, ok := v.(float64)
		if !ok || math.IsNaN(f) {
			return fail.Usage("--goal %s is no number at %s", x.Goal, r.Text)
		}
		t := x.values[r.Key]
		if t == nil {
			t = &Tried{Point: r.Text, key: r.Key}
			x.values[r.Key] = t
		}
		t.Value += f
		us, _ := row["time_us"].(float64)
		t.TimeUs += us
		t.Rate, _ = row["usd_h"].(float64)
		if x.fit != nil {
			t.training(row)
		}
		return nil
	})
}

func (x *searcher) found() *Found {
	best := x.ranked()
	f := &Found{Goal: x.Goal, Points: len(x.jobs), Tried: len(x.tried), Failed: x.failed, CPU: x.cpu,
		Front: []Tried{}, Layouts: x.fit}
	if f.Tried > 0 && x.fit == nil {
		f.Exhaustive = x.cpu * float64(f.Points) / float64(f.Tried)
	}
	if len(best) == 0 {
		return f
	}
	f.Best = best[0]
	if x.fit != nil {
		x.trainings(f, best)
		return f
	}
	slices.SortFunc(best, func(a, b *Tried) int {
		return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.TimeUs, b.TimeUs), cmp.Compare(a.key, b.key))
	})
	for _, t := range best {
		if n := len(f.Front); n == 0 || t.TimeUs < f.Front[n-1].TimeUs {
			f.Front = append(f.Front, *t)
		}
	}
	return f
}

package compare

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Change is the difference of one kind of slice between two traces. Counts and times are those of the first
// and the second trace.
type Change struct {
	Cat     string     `json:"cat"`
	Name    string     `json:"name"`
	Count   [2]int     `json:"count"`
	TotalUs [2]float64 `json:"total_us"`
}

// Step is a slice of both traces: with equal process, category and name, and index among these.
type Step struct {
	PID     int64      `json:"pid"`
	Process string     `json:"process"`
	Thread  string     `json:"thread"`
	Cat     string     `json:"cat"`
	Name    string     `json:"name"`
	Number  int        `json:"number"`
	StartUs [2]float64 `json:"start_us"`
	DurUs   [2]float64 `json:"dur_us"`
	Lines   [2]int     `json:"lines"`
	// Why attributes the difference of the lengths; empty if neither trace has terms.
	Why []Part `json:"why"`
}

// Differences is the comparison of two traces.
type Differences struct {
	EndUs [2]float64 `json:"end_us"`
	// OnlyIn counts slices without a partner.
	OnlyIn  [2]int `json:"only_in"`
	Matched int    `json:"matched"`
	// Timeless counts events whose ts or dur is no number of microseconds: they
	// are left out.
	Timeless [2]int   `json:"timeless"`
	Kinds    []Change `json:"kinds"`
	// First is the earliest matched slice whose start or length differs by more than the tolerance; nil if
	// there is none.
	First *Step `json:"first_departure"`
	// Cause is the earliest slice that differs by its own work, not by waiting, and by at least a hundredth
	// of the whole difference; nil if none is known.
	Cause *Step `json:"first_cause"`
	// Reasons attribute the differences, by kind; Terms are the sums for steps over all kinds.
	Reasons []Reason `json:"reasons"`
	Terms   []Part   `json:"terms"`
	// Largest are the matched slices whose lengths differ most.
	Largest []Step `json:"largest"`
	// StartErr and DurErr are the mean absolute differences of starts and
	// lengths in microseconds.
	StartErr float64 `json:"mean_start_difference_us"`
	DurErr   float64 `json:"mean_length_difference_us"`
}

// Equal reports whether no slice differs beyond the tolerance, and every slice has a partner and a valid
// time.
func (d *Differences) Equal() bool {
	return d.First == nil && d.OnlyIn == [2]int{} && d.Timeless == [2]int{}
}

type series struct {
	pid             int64
	thread          string
	cat, name, peer string
}

// side is the data of one of two traces.
type side struct {
	slices    map[series][]*slice
	processes map[int64]string
	threads   map[[2]int64]string
	end       units.Time
	timeless  int

	all   [][]slice       // in the order read, in blocks that are not moved
	ranks map[int64]int64 // process → rank, for processes numbered in another way
	pairs *pairs
	kept  *trace.Budget
}

// block is the number of slices allocated together.
const block = 1024

func (s *side) keep(x *slice) error {
	n := len(s.all)
	if n == 0 || len(s.all[n-1]) == block {
		s.all = append(s.all, make([]slice, 0, block))
		n++
	}
	s.all[n-1] = append(s.all[n-1], *x)
	return s.kept.Keep(x.size(), x.line)
}

// channelOf returns the common name of threads that belong together: lanes are chosen by time, so a slice may
// be on another lane in another run.
func channelOf(thread string) string {
	for _, cut := range []string{" · step ", " · op "} {
		if i := strings.Index(thread, cut); i >= 0 {
			return sideOf(thread[:i])
		}
	}
	for _, counted := range []string{"collectives", "P2P"} {
		if strings.HasPrefix(thread, counted) {
			return counted
		}
	}
	return thread
}

// sideOf removes the peer from the name of a channel's side, as foreign traces lack it: "ch 00 → rank 1"
// becomes "ch 00 send".
func sideOf(lanes string) string {
	for _, side := range [][2]string{{" → ", " send"}, {" ← ", " recv"}} {
		if i := strings.Index(lanes, side[0]); i >= 0 && strings.HasPrefix(lanes, "ch ") {
			return lanes[:i] + side[1]
		}
	}
	return lanes
}

// load reads one of two traces.
func load(r io.Reader, kept *trace.Budget) (*side, error) {
	s := &side{slices: map[series][]*slice{}, processes: map[int64]string{}, threads: map[[2]int64]string{},
		ranks: map[int64]int64{},
		pairs: newPairs(kept), kept: kept}
	if _, err := chrome.Read(r, s.event); err != nil {
		return nil, err
	}
	for _, list := range s.all {
		for i := range list {
			s.place(&list[i])
		}
	}
	for _, list := range s.slices { //lint:sorted each list is sorted by itself
		// Of slices with equal start the longer comes first, whatever the order in the file.
		slices.SortStableFunc(list, func(a, b *slice) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
	}
	s.launches()
	return s, nil
}

// event processes one event of the file.
func (s *side) event(e *chrome.Event) error {
	if e.Phase == 'M' {
		a, _ := e.Arg("name")
		switch e.Name {
		case "process_name":
			s.processes[e.PID] = a.Str
		case "thread_name":
			s.threads[[2]int64{e.PID, e.TID}] = a.Str
		}
		return s.kept.Keep(int64(len(a.Str))+80, e.Line)
	}
	if e.BadTS != "" {
		s.timeless++
		return nil
	}
	// The critical path repeats steps, and a proxy idles between them: both are skipped.
	x, ok, err := s.pairs.slice(e)
	if err != nil || !ok || x.cat == "critical" || x.name == "Idle" {
		return err
	}
	if _, known := s.ranks[x.pid]; !known && x.rank >= 0 && x.pid < nccl.RankPID {
		s.ranks[x.pid] = x.rank
	}
	s.end = max(s.end, x.end)
	return s.keep(&x)
}

// place adds a slice to its series, once all names are known.
func (s *side) place(x *slice) {
	thread := x.thread
	if thread == "" {
		thread = channelOf(s.threads[[2]int64{x.pid, x.tid}])
	}
	if r, ok := s.ranks[x.pid]; ok {
		x.pid = nccl.RankPID + r
		s.processes[x.pid] = fmt.Sprintf("rank %d", r)
	}
	k := series{x.pid, thread, x.cat, x.name + x.opcode, strconv.FormatInt(x.peer, 10)}
	s.slices[k] = append(s.slices[k], x)
}

// launches computes how long operations waited for their kernels, if the trace does not say.
func (s *side) launches() {
	first := map[int64]units.Time{}
	for k, list := range s.slices { //lint:sorted a minimum
		if k.cat == "GPU" {
			if at, ok := first[k.pid]; !ok || list[0].start < at {
				first[k.pid] = list[0].start
			}
		}
	}
	for k, list := range s.slices { //lint:sorted each on its own
		for i := range list {
			x := list[i]
			if at, ok := first[k.pid]; ok && (k.cat == "COLL" || k.cat == "P2P") && !x.reported &&
				at >= x.start && at < x.end {
				x.terms[nccl.Launch], x.reported = at-x.start, true
			}
		}
	}
}

const largest = 10

// TraceError is an error in one of several traces; Nth counts from 0.
type TraceError struct {
	Nth int
	Err error
}

// Error returns the trace's number, counted from 1, and the error.
func (e *TraceError) Error() string { return fmt.Sprintf("trace %d: %v", e.Nth+1, e.Err) }

// Unwrap returns the error.
func (e *TraceError) Unwrap() error { return e.Err }

// Diff compares two traces. Slices of one process, channel, category, name and peer are matched in the order
// of their starts; tolerance is the difference that is ignored. A trace that cannot be read is a *TraceError.
func Diff(a, b io.Reader, tolerance units.Time, kept *trace.Budget) (*Differences, error) {
	one, err := load(a, kept)
	if err != nil {
		return nil, &TraceError{0, err}
	}
	two, err := load(b, kept)
	if err != nil {
		return nil, &TraceError{1, err}
	}
	d := &Differences{EndUs: [2]float64{one.end.Micros(), two.end.Micros()}, Timeless: [2]int{one.timeless,
		two.timeless}, Largest: []Step{}}
	kinds := map[kindKey]*Change{}
	var met []pairing
	for _, k := range bothKeys(one.slices, two.slices) {
		x, y := one.slices[k], two.slices[k]
		tally(kinds, k, 0, x)
		tally(kinds, k, 1, y)
		n := min(len(x), len(y))
		d.OnlyIn[0] += len(x) - n
		d.OnlyIn[1] += len(y) - n
		if n > 0 {
			key := k
			for i := range n {
				met = append(met, pairing{&key, i, x[i], y[i]})
			}
			if err := kept.Keep(48*int64(n), x[0].line); err != nil {
				return nil, &TraceError{0, err}
			}
		}
	}
	d.Matched = len(met)
	d.judge([2]*side{one, two}, met, tolerance.Micros())
	for _, c := range kinds { //lint:sorted the list is sorted below
		d.Kinds = append(d.Kinds, *c)
	}
	slices.SortFunc(d.Kinds, func(a, b Change) int {
		da, db := math.Abs(a.TotalUs[1]-a.TotalUs[0]), math.Abs(b.TotalUs[1]-b.TotalUs[0])
		return cmp.Or(cmp.Compare(db, da), strings.Compare(a.Cat, b.Cat), strings.Compare(a.Name, b.Name))
	})
	return d, nil
}

// judge compares the matched slices.
func (d *Differences) judge(sides [2]*side, met []pairing, tolerance float64) {
	why := newExplainer(sides, met)
	reasons := map[kindKey]*Reason{}
	sums := map[kindKey]*parts{}
	var all parts
	var startErr, durErr float64
	steps := 0
	least := max(tolerance, 0.003, 0.01*math.Abs(d.EndUs[1]-d.EndUs[0]))
	for i := range met {
		p := &met[i]
		k := p.key
		s := Step{PID: k.pid, Process: sides[0].processes[k.pid], Thread: k.thread, Cat: k.cat, Name: k.name,
			Number:  p.n,
			StartUs: [2]float64{p.a.start.Micros(), p.b.start.Micros()}, Lines: [2]int{p.a.line, p.b.line},
			DurUs: [2]float64{p.a.dur().Micros(), p.b.dur().Micros()}, Why: []Part{}}
		startErr += math.Abs(s.StartUs[1] - s.StartUs[0])
		durErr += math.Abs(s.DurUs[1] - s.DurUs[0])
		reported, ok := why.explain(p)
		if ok {
			s.Why = reported.list(1)
			id := kindKey{k.cat, k.name}
			if reasons[id] == nil {
				reasons[id], sums[id] = &Reason{Cat: k.cat, Name: k.name}, &parts{}
			}
			reasons[id].Slices++
			reasons[id].DiffUs += s.DurUs[1] - s.DurUs[0]
			sums[id].add(&reported)
			if k.cat == "NET" || k.cat == "P2P_XFER" {
				all.add(&reported)
				steps++
			}
		}
		d.consider(s, tolerance)
		if s.causes(least) && (d.Cause == nil || s.StartUs[0] < d.Cause.StartUs[0]) {
			d.Cause = &s
		}
	}
	if len(met) > 0 {
		d.StartErr, d.DurErr = startErr/float64(len(met)), durErr/float64(len(met))
	}
	d.Terms, d.Reasons = all.list(steps), []Reason{}
	for id, r := range reasons { //lint:sorted the list is sorted below
		r.Parts = sums[id].list(r.Slices)
		d.Reasons = append(d.Reasons, *r)
	}
	slices.SortFunc(d.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(math.Abs(b.DiffUs), math.Abs(a.DiffUs)), strings.Compare(a.Cat, b.Cat),
			strings.Compare(a.Name, b.Name))
	})
}

// causes reports whether a slice differs by its own work rather than by a longer wait.
func (s *Step) causes(tolerance float64) bool {
	own, waits := 0.0, 0.0
	for _, p := range s.Why {
		switch {
		case p.Waits:
			waits += math.Abs(p.Us)
		case p.Term != inKernel:
			own += math.Abs(p.Us)
		}
	}
	return own > max(tolerance, waits)
}

func tally(kinds map[kindKey]*Change, k series, which int, list []*slice) {
	id := kindKey{k.cat, k.name}
	if kinds[id] == nil {
		kinds[id] = &Change{Cat: k.cat, Name: k.name}
	}
	kinds[id].Count[which] += len(list)
	for _, s := range list {
		kinds[id].TotalUs[which] += (s.end - s.start).Micros()
	}
}

func (d *Differences) consider(s Step, tolerance float64) {
	gap := math.Abs(s.DurUs[1] - s.DurUs[0])
	if gap <= tolerance && math.Abs(s.StartUs[1]-s.StartUs[0]) <= tolerance {
		return
	}
	if d.First == nil || s.StartUs[0] < d.First.StartUs[0] {
		c := s
		d.First = &c
	}
	at, _ := slices.BinarySearchFunc(d.Largest, gap, func(o Step, gap float64) int {
		if math.Abs(o.DurUs[1]-o.DurUs[0]) >= gap {
			return -1
		}
		return 1
	})
	if at < largest {
		d.Largest = slices.Insert(d.Largest, at, s)
		d.Largest = d.Largest[:min(len(d.Largest), largest)]
	}
}

func bothKeys(a, b map[series][]*slice) []series {
	both := map[series][]*slice{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return slices.SortedFunc(maps.Keys(both), func(x, y series) int {
		return cmp.Or(cmp.Compare(x.pid, y.pid), strings.Compare(x.thread, y.thread),
			strings.Compare(x.cat, y.cat),
			strings.Compare(x.name, y.name), strings.Compare(x.peer, y.peer))
	})
}

// Text writes the comparison for people; names are those of the two traces.
func (d *Differences) Text(w io.Writer, names [2]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A %s: ends at %.3f us\nB %s: ends at %.3f us (%+.2f %%)\n", names[0], d.EndUs[0],
		names[1], d.EndUs[1], percent(d.EndUs))
	fmt.Fprintf(&b, "%d slices meet, %d only in A, %d only in B; mean difference of starts %.3f us, of "+
		"lengths %.3f us\n",
		d.Matched, d.OnlyIn[0], d.OnlyIn[1], d.StartErr, d.DurErr)
	for i, n := range d.Timeless {
		if n > 0 {
			fmt.Fprintf(&b,
				"%d events of %c have no usable time and are left out; simccl trace validate names them\n", n,
				'A'+i)
		}
	}
	if d.First != nil {
		fmt.Fprintf(&b, "first departure: %s\n", d.First)
		d.First.why(&b)
		if c := d.Cause; c != nil {
			fmt.Fprintf(&b, "first cause: %s\n", c)
			c.why(&b)
		}
	} else {
		fmt.Fprintf(&b, "no slice departs\n")
	}
	d.textReasons(&b)
	fmt.Fprintf(&b, "\n%-14s %-24s %10s %10s %14s %14s %9s\n", "category", "name", "count A", "count B",
		"total A us", "total B us", "change %")
	for _, k := range d.Kinds {
		fmt.Fprintf(&b, "%-14s %-24s %10d %10d %14.3f %14.3f %+9.2f\n", shown(k.Cat), shown(k.Name),
			k.Count[0], k.Count[1], k.TotalUs[0], k.TotalUs[1], percent(k.TotalUs))
	}
	if len(d.Largest) > 0 {
		fmt.Fprintf(&b, "\nlargest differences of length:\n")
		for _, s := range d.Largest {
			fmt.Fprintf(&b, "  %s\n", &s)
			s.why(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func percent(v [2]float64) float64 {
	if v[0] == 0 {
		return 0
	}
	return 100 * (v[1] - v[0]) / v[0]
}

// why writes the attribution of a step's difference.
func (s *Step) why(b *strings.Builder) {
	if len(s.Why) > 0 {
		fmt.Fprintf(b, "    its %+.3f us: %s\n", s.DurUs[1]-s.DurUs[0], partsText(s.Why, " us"))
	}
}

// textReasons writes by category and name of a slice what the difference of the two traces consists of.
func (d *Differences) textReasons(b *strings.Builder) {
	if len(d.Reasons) == 0 || d.Equal() {
		return
	}
	fmt.Fprintf(b, "\nwhat the differences consist of, B - A in us (~ inferred; in brackets: waits, which "+
		"follow from the rest)\n")
	if len(d.Terms) > 0 {
		fmt.Fprintf(b, "%-14s %-24s %10s %14s  %s\n", "all steps", "", "", "", partsText(d.Terms, ""))
	}
	for _, r := range d.Reasons {
		fmt.Fprintf(b, "%-14s %-24s %10d %+14.3f  %s\n", shown(r.Cat), shown(r.Name), r.Slices, r.DiffUs,
			partsText(r.Parts, ""))
	}
}

func partsText(list []Part, unit string) string {
	var out []string
	for _, p := range list {
		sure := "~"
		if p.Reported {
			sure = ""
		}
		text := fmt.Sprintf("%s %s%+.3f%s", p.Term, sure, p.Us, unit)
		if p.Waits {
			text = "[" + text + "]"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// String returns where the slice is, and its times in both traces.
func (s *Step) String() string {
	where := shown(s.Process)
	if where == "" {
		where = fmt.Sprintf("pid %d", s.PID)
	}
	if s.Thread != "" {
		where += " · " + shown(s.Thread)
	}
	return fmt.Sprintf("%s: %s %s #%d: A %.3f +%.3f us (line %d), B %.3f +%.3f us (line %d)", where,
		shown(s.Cat), shown(s.Name), s.Number,
		s.StartUs[0], s.DurUs[0], s.Lines[0], s.StartUs[1], s.DurUs[1], s.Lines[1])
}

package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// Kind sums up the slices of one category and name.
type Kind struct {
	Cat   string  `json:"cat"`
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Total float64 `json:"total_us"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
	Bytes int64   `json:"bytes"`

	durs []units.Time
}

// LinkLoad sums up a link's counter.
type LinkLoad struct {
	Name    string  `json:"name"`
	Mean    float64 `json:"mean"` // over the length of the trace
	Peak    float64 `json:"peak"`
	Busy    float64 `json:"busy_percent"`
	area    float64
	busy    units.Time
	last    float64
	at      units.Time
	started bool
	pid     int64
}

// Stats holds a trace's totals, by kind of slice and by counter.
type Stats struct {
	Schema string     `json:"schema,omitempty"`
	Source string     `json:"source,omitempty"`
	Events int        `json:"events"`
	LastUs float64    `json:"end_us"`
	Kinds  []Kind     `json:"kinds"`
	Links  []LinkLoad `json:"counters"`
	// Timeless counts events whose ts or dur is no number of microseconds; they are omitted.
	Timeless int `json:"timeless,omitempty"`
	// FirstTimeless describes the first of them, with its line.
	FirstTimeless string `json:"first_timeless,omitempty"`
}

type kindKey struct{ cat, name string }

// tallies is the state of summing up events.
type tallies struct {
	st        Stats
	kept      *trace.Budget
	kinds     map[kindKey]*Kind
	links     map[counterKey]*LinkLoad
	processes map[int64]string
	pairs     *pairs
	end       units.Time
}

func (t *tallies) event(e *chrome.Event) error {
	if e.Phase == 'M' && e.Name == "process_name" {
		a, _ := e.Arg("name")
		t.processes[e.PID] = a.Str
		return t.kept.Keep(int64(len(a.Str))+64, e.Line)
	}
	switch {
	case e.Phase == 'M':
		return nil
	case e.BadTS != "":
		if t.st.Timeless++; t.st.Timeless == 1 {
			t.st.FirstTimeless = fmt.Sprintf("line %d: %s", e.Line, e.BadTS)
		}
		return nil
	}
	t.end = max(t.end, e.TS+e.Dur)
	if e.Phase == 'C' {
		for _, a := range e.Args {
			if err := t.count(e, a); err != nil {
				return err
			}
		}
		return nil
	}
	s, ok, err := t.pairs.slice(e)
	if err != nil || !ok {
		return err
	}
	k := kindKey{s.cat, s.name + s.opcode}
	if t.kinds[k] == nil {
		t.kinds[k] = &Kind{Cat: k.cat, Name: k.name}
		if err := t.kept.Keep(int64(len(k.cat)+len(k.name))+256, e.Line); err != nil {
			return err
		}
	}
	t.kinds[k].durs = append(t.kinds[k].durs, s.end-s.start)
	t.kinds[k].Bytes += s.bytes
	return t.kept.Keep(12, e.Line) // a list grows by a quarter at a time
}

// Count reads a trace and sums it up. Asynchronous and begin/end pairs count as slices. The lengths of all
// slices are stored, within the budget.
func Count(r io.Reader, kept *trace.Budget) (*Stats, error) {
	t := &tallies{kept: kept, kinds: map[kindKey]*Kind{}, links: map[counterKey]*LinkLoad{},
		processes: map[int64]string{}, pairs: newPairs(kept)}
	info, err := chrome.Read(r, t.event)
	if err != nil {
		return nil, err
	}
	st, end := &t.st, t.end
	st.Schema, st.Source, st.Events, st.LastUs, st.Kinds, st.Links = info.Schema, info.Source, info.Events,
		end.Micros(), []Kind{}, []LinkLoad{}
	for _, k := range t.kinds { //lint:sorted below
		k.finish()
		st.Kinds = append(st.Kinds, *k)
	}
	slices.SortFunc(st.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Cat, b.Cat),
			strings.Compare(a.Name, b.Name))
	})
	for _, l := range t.links { //lint:sorted below
		l.until(end)
		if end > 0 {
			l.Mean, l.Busy = l.area/float64(end), 100*float64(l.busy)/float64(end)
		}
		st.Links = append(st.Links, *l)
	}
	named(st.Links, t.processes)
	slices.SortFunc(st.Links, func(a, b LinkLoad) int {
		return cmp.Or(cmp.Compare(b.Mean, a.Mean), strings.Compare(a.Name, b.Name))
	})
	return st, nil
}

// counterKey identifies a counter: each process has its own.
type counterKey struct {
	pid  int64
	name string
}

// named adds the process to the names of counters that several processes have.
func named(links []LinkLoad, processes map[int64]string) {
	times := map[string]int{}
	for i := range links {
		times[links[i].Name]++
	}
	for i := range links {
		l := &links[i]
		if times[l.Name] > 1 {
			if p := processes[l.pid]; p != "" {
				l.Name = p + ": " + l.Name
			} else {
				l.Name = fmt.Sprintf("process %d: %s", l.pid, l.Name)
			}
		}
	}
}

// count adds a counter's value.
func (t *tallies) count(e *chrome.Event, a trace.Arg) error {
	if a.Kind == trace.StringArg {
		return nil // reported by package validate
	}
	name := e.Name
	if !strings.HasSuffix(name, a.Key) {
		name += " " + a.Key
	}
	k := counterKey{e.PID, name}
	l := t.links[k]
	if l == nil {
		l = &LinkLoad{Name: name, pid: e.PID}
		t.links[k] = l
		if err := t.kept.Keep(int64(len(name))+256, e.Line); err != nil {
			return err
		}
	}
	l.until(e.TS)
	l.last = a.Num
	if a.Kind == trace.IntArg {
		l.last = float64(a.Int)
	}
	l.Peak = max(l.Peak, l.last)
	return nil
}

func (l *LinkLoad) until(t units.Time) {
	if l.started && t > l.at {
		l.area += float64(l.last * float64(t-l.at))
		if l.last != 0 {
			l.busy += t - l.at
		}
	}
	l.at, l.started = max(l.at, t), true
}

func (k *Kind) finish() {
	slices.Sort(k.durs)
	n := len(k.durs)
	var sum units.Time
	var us float64 // in microseconds, where picoseconds overflow
	for _, d := range k.durs {
		sum += d
		us += d.Micros()
	}
	if us < 9e12 {
		us = sum.Micros()
	}
	k.Count, k.Total, k.Mean = n, us, us/float64(n)
	k.P50, k.P99, k.Max = k.durs[n/2].Micros(), k.durs[min(n-1, (n*99+99)/100-1)].Micros(),
		k.durs[n-1].Micros()
	k.durs = nil
}

// shown returns a name of a trace for text output: on one line and of bounded length.
func shown(name string) string { return termtext.Short(name, 200) }

// Text writes the numbers for people.
func (s *Stats) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events, %.3f us", s.Events, s.LastUs)
	if s.Source != "" {
		fmt.Fprintf(&b, ", source %s", shown(s.Source))
	}
	fmt.Fprintf(&b, "\n\n%-14s %-24s %10s %14s %10s %10s %10s %10s %16s\n", "category", "name", "count",
		"total us", "mean us", "p50 us", "p99 us", "max us", "bytes")
	for _, k := range s.Kinds {
		fmt.Fprintf(&b, "%-14s %-24s %10d %14.3f %10.3f %10.3f %10.3f %10.3f %16d\n", shown(k.Cat),
			shown(k.Name), k.Count, k.Total, k.Mean, k.P50, k.P99, k.Max, k.Bytes)
	}
	if len(s.Links) > 0 {
		fmt.Fprintf(&b, "\n%-40s %10s %10s %8s\n", "counter", "mean", "peak", "busy %")
		for _, l := range s.Links {
			fmt.Fprintf(&b, "%-40s %10.3f %10.3f %8.2f\n", shown(l.Name), l.Mean, l.Peak, l.Busy)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

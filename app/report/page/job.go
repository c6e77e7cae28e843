package page

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// Summary is a job in figures. Times are microseconds, on average over ranks.
type Summary struct {
	Format     string      `json:"format"`
	Files      []inputFile `json:"files"`
	GPU        string      `json:"gpu,omitempty"`
	NCCL       string      `json:"nccl,omitempty"`
	Ranks      int         `json:"ranks"`
	Lists      int         `json:"lists"`
	Steps      int         `json:"steps"`
	Calls      int         `json:"calls"`
	ComputeUs  float64     `json:"computeUs"`
	HostUs     float64     `json:"hostUs"`
	Groups     []jobGroup  `json:"groups"`
	Iterations []iteration `json:"iterations,omitempty"`
	Recorded   []recorded  `json:"recorded,omitempty"`
	Notes      []string    `json:"notes"`
}

type inputFile struct {
	Name   string `json:"name"`
	Format string `json:"format"`
}

// jobGroup is a communicator, or several of one kind, size and use.
type jobGroup struct {
	Name         string  `json:"name"`
	Kind         string  `json:"kind"`
	Groups       int     `json:"groups"`
	Ranks        int     `json:"ranks"`
	Calls        int     `json:"calls"`        // of a rank
	BytesPerRank int64   `json:"bytesPerRank"` // what a rank puts in
	Func         string  `json:"func"`
	RecordedUs   float64 `json:"recordedUs,omitempty"` // of a rank's calls alone
}

// iteration is a recorded step.
type iteration struct {
	Name string  `json:"name"`
	Us   float64 `json:"us"`
}

// recorded is what one recording measured by itself.
type recorded struct {
	Rank        int     `json:"rank"`
	SpanUs      float64 `json:"spanUs"`
	BusyUs      float64 `json:"busyUs"`
	CommUs      float64 `json:"commUs"`
	ExposedUs   float64 `json:"exposedUs"`
	Collectives int     `json:"collectives"`
	ClockUs     float64 `json:"clockUs"`    // offset
	ResidualUs  float64 `json:"residualUs"` // of the clock
}

func us(t units.Time) float64 { return float64(t/1000) / 1000 }

// JobOf sums a job.
func JobOf(j *load.Job) *Summary {
	p := j.Program
	s := &Summary{Format: j.Format.String(), GPU: j.Meta.GPU, NCCL: j.Meta.NCCL, Ranks: p.Ranks(),
		Lists: len(p.Lists), Notes: j.Notes, Groups: []jobGroup{}}
	if s.Notes == nil {
		s.Notes = []string{}
	}
	for _, f := range j.Files {
		s.Files = append(s.Files, inputFile{f.Name, f.Format.String()})
	}
	s.times(p)
	s.groups(p)
	if j.Rebuilt != nil {
		for _, x := range j.Rebuilt.Steps {
			s.Iterations = append(s.Iterations, iteration{x.Name, us(x.Mean)})
		}
		for i, t := range j.Traces {
			m := t.Measure()
			r := recorded{Rank: max(t.Rank, 0), SpanUs: float64(m.Span) / 1000,
				BusyUs: float64(m.Busy) / 1000, CommUs: float64(m.Comm) / 1000,
				ExposedUs: float64(m.Exposed) / 1000, Collectives: m.Collectives}
			if i < len(j.Rebuilt.Clocks) {
				r.ClockUs, r.ResidualUs = float64(j.Rebuilt.Clocks[i].Offset)/1000,
					float64(j.Rebuilt.Clocks[i].Residual)/1000
			}
			s.Recorded = append(s.Recorded, r)
		}
	}
	return s
}

// times sums the computations of lists, weighted by their ranks.
func (s *Summary) times(p *workload.Program) {
	var compute, host float64
	ranks := make([]int, len(p.Lists))
	for _, i := range p.Of {
		ranks[i]++
	}
	for i := range p.Lists {
		steps := p.Lists[i].Steps
		s.Steps += len(steps)
		for k := range steps {
			switch st := &steps[k]; {
			case st.Kind == workload.Issue:
				s.Calls++
			case st.Kind == workload.Compute && workload.OnHost(st.Stream):
				host += us(st.Time) * float64(ranks[i])
			case st.Kind == workload.Compute && !p.Communicates(st):
				compute += us(st.Time) * float64(ranks[i])
			}
		}
	}
	if n := float64(p.Ranks()); n > 0 {
		s.ComputeUs, s.HostUs = compute/n, host/n
	}
}

// groups sums the calls of communicators; those of one kind, size and name but for
// its number are one line, with the figures of the first.
func (s *Summary) groups(p *workload.Program) {
	type key struct {
		comm int32
		fn   string
	}
	sums := map[key]*jobGroup{}
	first := make([]int32, len(p.Comms)) // rank whose calls are counted
	for c := range p.Comms {
		first[c] = p.Comms[c].Rank(0)
	}
	var order []key
	for r := range p.Of {
		for _, st := range p.Lists[p.Of[r]].Steps {
			if st.Kind != workload.Issue {
				continue
			}
			call := &p.Calls[st.Call]
			if first[call.Comm] != int32(r) {
				continue
			}
			k := key{call.Comm, call.Func.TestName()}
			g := sums[k]
			if g == nil {
				c := &p.Comms[call.Comm]
				g = &jobGroup{Name: c.Name, Kind: c.Kind.String(), Groups: 1, Ranks: c.Size(len(p.Of)),
					Func: k.fn}
				sums[k] = g
				order = append(order, k)
			}
			g.Calls++
			g.BytesPerRank += int64(call.Bytes())
			g.RecordedUs += us(call.Recorded)
		}
	}
	at := map[string]int{}
	for _, k := range order {
		g := sums[k]
		id := fmt.Sprint(strings.TrimRight(g.Name, "0123456789@."), g.Kind, g.Ranks, g.Func, g.Calls,
			g.BytesPerRank)
		if i, known := at[id]; known {
			s.Groups[i].Groups++
			continue
		}
		at[id] = len(s.Groups)
		s.Groups = append(s.Groups, *g)
	}
	slices.SortStableFunc(s.Groups, func(a, b jobGroup) int {
		return cmp.Compare(b.BytesPerRank, a.BytesPerRank)
	})
}

// maxGroups bounds the lines of a table.
const maxGroups = 40

// WriteText writes the summary for a person.
func (s *Summary) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "format\t%s, %d files\n", s.Format, len(s.Files))
	if s.GPU != "" || s.NCCL != "" {
		fmt.Fprintf(w, "machine\t%s, NCCL %s\n", cmp.Or(s.GPU, "unknown GPU"), cmp.Or(s.NCCL, "unknown"))
	}
	fmt.Fprintf(w, "ranks\t%d, with %d different lists of %d steps in all\n", s.Ranks, s.Lists, s.Steps)
	fmt.Fprintf(w, "compute\t%.3f ms a rank\n", s.ComputeUs/1000)
	if s.HostUs > 0 {
		fmt.Fprintf(w, "host\t%.3f ms a rank\n", s.HostUs/1000)
	}
	for _, x := range s.Iterations {
		fmt.Fprintf(w, "%s\t%.3f ms recorded\n", x.Name, x.Us/1000)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(s.Groups) > 0 {
		w = tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "\ngroup\tkind\tgroups\tranks\tcall\tcalls\tbytes/rank\trecorded alone\n")
		for i, g := range s.Groups {
			if i == maxGroups {
				fmt.Fprintf(w, "… %d more\n", len(s.Groups)-i)
				break
			}
			recorded := "-"
			if g.RecordedUs > 0 {
				recorded = fmt.Sprintf("%.3f ms", g.RecordedUs/1000)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d\t%s\n", g.Name, g.Kind, g.Groups, g.Ranks, g.Func,
				g.Calls, g.BytesPerRank, recorded)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(s.Recorded) > 0 {
		w = tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w,
			"\nrank\tspan ms\tbusy ms\tcommunication ms\texposed ms\tcollectives\tclock us\tresidual us\n")
		for _, r := range s.Recorded {
			fmt.Fprintf(w, "%d\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t%.1f\t%.1f\n", r.Rank, r.SpanUs/1000,
				r.BusyUs/1000, r.CommUs/1000, r.ExposedUs/1000, r.Collectives, r.ClockUs, r.ResidualUs)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, n := range s.Notes {
		if _, err := fmt.Fprintf(to, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}

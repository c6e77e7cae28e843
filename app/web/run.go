package web

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/advise"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Progress is the share of a call that is done.
type Progress struct {
	Share float64 `json:"share"`
	What  string  `json:"what"`
}

// Row is one size that was simulated. Texts are as nccl-tests' table has them, to the
// last digit.
type Row struct {
	Bytes   int64   `json:"bytes"`
	Label   string  `json:"label"`
	Count   int64   `json:"count"`
	Us      float64 `json:"us"`
	BusBW   float64 `json:"busbw"`
	Time    string  `json:"time"`
	AlgText string  `json:"algbw"`
	BusText string  `json:"busText"`
	InTime  string  `json:"inTime"` // in place
	InBus   string  `json:"inBus"`
	// bus bandwidth if the limiting link were never idle; 0: unknown
	LimitBW float64        `json:"limitBusbw"`
	LimitUs float64        `json:"limitUs"`
	Facts   scenario.Facts `json:"facts"`
	// by Link of the Machine: the share of the time that its bytes need; -1: not known
	Use      []float32 `json:"use"`
	Merged   bool      `json:"merged"` // some of Use are those of the fullest link of their kind
	Loads    []Load    `json:"loads"`  // the fullest links of all, equal ones together
	Channels int       `json:"channels"`
	Network  []string  `json:"network"` // what frames met, in words; empty where there were none
	// what draws of hashed routes came to, in words; empty where none matters
	Draws []string `json:"draws"`
}

// Load is how busy links are that have one role.
type Load struct {
	Name  string  `json:"name"`
	Equal int     `json:"equal"` // links of this kind and load
	GBps  float64 `json:"gbps"`
	Bytes int64   `json:"bytes"`
	Use   float64 `json:"use"`
}

// Ran ends the rows of a run.
type Ran struct {
	Avg   string   `json:"avgBusBW"`
	Notes []string `json:"notes"`
	Table string   `json:"table"` // as simccl run prints it
}

// loadsShown bounds the kinds of links of a row.
const loadsShown = 24

func (s *Service) run(ctx context.Context, q *Query, emit Emit) (any, error) {
	r, x, err := s.running(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	t, err := newTable(r)
	if err != nil {
		return nil, err
	}
	total := len(r.Lines())
	emit(Progress{0, "simulating"})
	n := 0
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		out, err := s.row(r, x.site, row)
		if err != nil {
			return nil, err
		}
		t.add(row)
		n++
		emit(out)
		emit(Progress{float64(n) / float64(total), "simulating"})
	}
	return t.end(r, s.program)
}

// row is a simulated size with its links.
func (s *Service) row(r *scenario.Running, site *scenario.Site, row *scenario.Row) (*Row, error) {
	f := &row.Facts
	out := &Row{Bytes: int64(row.Bytes), Label: sizeName(int64(row.Bytes)), Count: row.Count,
		Us: row.Out.Time.Micros(), BusBW: row.Out.BusBW, Facts: *f, Channels: f.Channels,
		Time: number(row.Out.Time.Micros(), 7), AlgText: number(row.Out.AlgBW, 6),
		BusText: number(row.Out.BusBW, 6), InTime: number(row.In.Time.Micros(), 7),
		InBus:   number(row.In.BusBW, 6),
		LimitBW: f.Expect, LimitUs: f.IdealUs, Use: []float32{}, Loads: []Load{}, Network: []string{},
		Draws: []string{}}
	if f.Draws != nil {
		out.Draws = f.Draws.Lines(row.Out.BusBW, f.SimUs)
	}
	if f.Congestion != nil {
		out.Network = f.Congestion.Lines()
	}
	if row.Operation.Count == 0 {
		return out, nil
	}
	o, err := r.Outcome(row.Operation)
	if err != nil {
		return nil, err
	}
	out.Use, out.Merged = use(site.Cluster.Host(0).Systems[0], &o.Result)
	out.Loads = loads(site, o.Result.Links, o.Result.Elapsed)
	return out, nil
}

func number(v float64, width int) string { return strings.TrimSpace(nccltests.Float(v, width)) }

// use is how busy each link of the first host is. Where equivalent ranks were merged, a link
// that was not simulated has the load of the fullest of its kind, and merged is true.
func use(sys *topo.System, r *exec.Result) (out []float32, merged bool) {
	by, merged := page.Loads(sys, "node0", r.Links, page.Folded(r))
	out = make([]float32, len(sys.Links))
	for i := range sys.Links {
		l := &sys.Links[i]
		out[i] = -1
		if x := by["node0 "+sys.Short(l.From)+"→"+sys.Short(l.To)]; x != nil {
			out[i] = float32(x.Use(r.Elapsed))
		}
	}
	return out, merged
}

// loads lists the fullest links, equal ones of all nodes together.
func loads(site *scenario.Site, links []exec.LinkLoad, elapsed units.Time) []Load {
	out, at := []Load{}, map[Load]int{}
	for i := range links {
		l := &links[i]
		if l.Capacity <= 0 || l.Bytes == 0 {
			continue
		}
		one := Load{Name: role(site.LinkName(l.Name)), GBps: float64(l.Capacity), Bytes: int64(l.Bytes),
			Use: l.Use(elapsed)}
		if k, ok := at[one]; ok {
			out[k].Equal++
			continue
		}
		at[one] = len(out)
		one.Equal = 1
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Use, a.Use), strings.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), loadsShown)]
}

// role is a link's name without the numbers of its node and devices: "GPU→NVSwitch".
func role(name string) string {
	node, rest, ok := strings.Cut(name, " ")
	if ok && strings.HasPrefix(node, "node") && !strings.Contains(node, "/") { // node0/2 is a NIC
		name = rest
	}
	ends := strings.Split(name, "→")
	for i, e := range ends {
		for _, kind := range []string{"GPU", "NIC", "PCI", "CPU", "DEV"} {
			if n, ok := strings.CutPrefix(e, kind); ok && strings.Trim(n, "0123456789") == "" {
				ends[i] = kind
			}
		}
		if k := strings.TrimRight(ends[i], "0123456789"); k != ends[i] && strings.Contains(k, "_") {
			ends[i] = k + "*"
		}
	}
	return strings.Join(ends, "→")
}

// Explained is why a choice was made, as data and as the command prints it.
type Explained struct {
	*explain.Report
	Text string `json:"text"`
}

func (s *Service) explain(ctx context.Context, q *Query, _ Emit) (any, error) {
	r, x, err := s.running(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	w := &r.Spec.Workload
	named := scenario.Named{Op: w.Op, Size: q.Size, Type: "float", RedOp: "sum", Root: max(w.Root, 0)}
	if len(w.Types) > 0 {
		named.Type = w.Types[0]
	}
	if len(w.Reductions) > 0 {
		named.RedOp = w.Reductions[0]
	}
	op, err := named.Parse(x.site.Comm.NRanks)
	if err != nil {
		return nil, err
	}
	rep, err := explain.New(explain.Input{Comm: x.site.Comm, Op: op, Access: x.site.Config.Topo.Access})
	var none *tuning.NoChoiceError
	if err != nil && !(errors.As(err, &none) && rep != nil) {
		return nil, err
	}
	return Explained{rep, rep.Text()}, check(ctx)
}

// Compared is what two Specs decide differently.
type Compared struct {
	*explain.Difference
	Text    string `json:"text"`
	Command string `json:"command"` // of the second Spec, as all below
	Ranks   int    `json:"ranks"`
	Hosts   int    `json:"hosts"`
	Times   string `json:"times"` // its machine class, and how sure its times are
}

func (s *Service) compare(ctx context.Context, q *Query, _ Emit) (any, error) {
	if q.Other == nil {
		return nil, &scenario.FieldError{Path: "other", Problem: "a comparison needs two Specs"}
	}
	_, a, err := s.running(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	r, b, err := s.running(ctx, q.Other)
	if err != nil {
		return nil, err
	}
	side := func(x *loaded) explain.Side {
		return explain.Side{Comm: x.site.Comm, Access: x.site.Config.Topo.Access}
	}
	d, err := explain.Compare(side(a), side(b), []coll.Func{r.Func()})
	if err != nil {
		return nil, err
	}
	return Compared{Difference: d, Text: d.Text(), Command: Command(q.Other), Ranks: b.site.Comm.NRanks,
		Hosts: b.site.Cluster.NHosts(), Times: b.site.Times()}, check(ctx)
}

// Advised is advice as data and as the command prints it.
type Advised struct {
	*advise.Report
	Text string `json:"text"`
}

func (s *Service) advise(ctx context.Context, q *Query, emit Emit) (any, error) {
	spec := q.Spec.Clone()
	spec.Engine.Jitter = "off" // as simccl advise has it: what is compared has no chance in it
	if spec.Engine.Launch == "" {
		spec.Engine.Launch = "graph" // its default, too: launches cost the same under every setting
	}
	rep, err := advise.New(ctx, advise.Request{Spec: spec, Options: s.options(ctx, nil),
		Begin: func(total int) func() {
			n := 0
			return func() {
				n++
				emit(Progress{float64(n) / math.Max(1, float64(total)), "trying settings"})
			}
		}})
	if err != nil {
		return nil, err
	}
	return Advised{rep, rep.Text()}, nil
}

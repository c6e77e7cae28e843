package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/sim/netpreset"
	tried "github.com/simccl/simccl/study/congestion"
	"github.com/simccl/simccl/topo/lint"
	"github.com/simccl/simccl/topo/show"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Of draws a run whose Rows have ended. program is the version of the program, and
// cancelled ends the search for the critical path.
func Of(ctx context.Context, r *scenario.Running, rows []scenario.Row, program string,
	cancelled func() error) (*page, error) {
	d := &drawn{Running: r, lines: r.Lines(), rows: rows, cancelled: cancelled}
	d.lines = d.lines[:d.first()]
	c, site := r.Site.Comm, r.Site
	p := &page{Title: fmt.Sprintf("%s on %d × %s", r.Name(), site.Cluster.NHosts(), site.Name)}
	launch := cmp.Or(r.Spec.Engine.Launch, "eager")
	p.Facts = []Fact{
		{Name: "ranks", Value: fmt.Sprintf("%d, nodes %d", c.NRanks, c.NNodes)},
		{Name: "channels", Value: fmt.Sprintf("%d; NVLS %d; send/recv %d", c.NChannels, c.NVLSChannels,
			c.P2PChannels)},
		{Name: "NVLink multicast", Value: map[bool]string{true: "on", false: "off"}[c.Multicast]},
		{Name: "rules", Value: "NCCL " + site.Config.Rules.Version()}, {Name: "simccl", Value: program},
		{Name: "topology", Value: site.Name + ", sha256 " + site.Digest[:12]},
		{Name: "seed", Value: r.SeedText()},
		{Name: "launch", Value: launch}, {Name: "times", Value: site.Times()}}
	if s, ok := netpreset.Summarize(site.Network, netpreset.Choice{Model: r.Spec.Network.Model,
		CC: r.Spec.Network.CC, Balance: r.Spec.Network.Balance}); ok {
		p.Facts = append(p.Facts, Fact{Name: "network", Value: strings.TrimPrefix(s.String(), "network ")})
	}
	if err := d.points(p); err != nil {
		return nil, err
	}
	if err := d.best(ctx, p); err != nil {
		return nil, err
	}
	if err := d.why(p); err != nil {
		return nil, err
	}
	d.machine(p)
	all := r.Lines()
	last := all[len(all)-1].Operation
	done, err := r.Outcome(last)
	if err != nil {
		return nil, err
	}
	p.Links, p.Elapsed, p.Folded = done.Result.Links, done.Result.Elapsed, Folded(&done.Result)
	if done.Plan != nil && r.Spec.Engine.Fidelity != "alpha" { // a formula has no events
		if p.Net = congestion.Of(done.Result.Links); p.Net != nil {
			p.Ports = newPorts()
			p.Incast, p.Crowd = tried.Named(site, r.Spec.Network.Balance, &done)
		}
		p.Timeline, err = d.timeline(ctx, d.Of(&done), last, p.Ports)
	}
	return p, err
}

type drawn struct {
	*scenario.Running
	lines     []scenario.Line // of the first type, reduction, root and cycle
	rows      []scenario.Row
	cancelled func() error
}

// first counts the lines of the first type, reduction, root and cycle.
func (d *drawn) first() int {
	n, err := d.Spec.Workload.AllSizes()
	if err != nil { // Prepare has refused it
		return 0
	}
	return min(len(n), len(d.lines))
}

const (
	// timelineRanks are the ranks whose steps the page draws.
	timelineRanks = 2
	// pathRanks bounds the communicators whose page has a critical path: for it the
	// steps of every rank are simulated.
	pathRanks = 72
	// bestRanks bounds the communicators whose page has the best of all choices:
	// every rival is simulated for it.
	bestRanks = 64
	// matrixGPUs bounds the GPUs of a path matrix that is shown.
	matrixGPUs = 72
)

// timeline simulates the first ranks' steps and, of communicators that are not
// too large for it, the critical path.
func (d *drawn) timeline(ctx context.Context, run *scenario.Running, at scenario.Operation,
	net *ports) (*trace.Memory, error) {
	kept := &firstRanks{keep: map[trace.TrackID]bool{}, net: net}
	opt := nccl.Options{Detail: nccl.DetailStep}
	var sink trace.Sink = kept
	if d.Site.Comm.NRanks <= pathRanks {
		sink = nccl.CriticalPath(kept, d.cancelled)
	} else {
		opt.Ranks = func(r int) bool { return r < timelineRanks }
	}
	if _, err := run.Simulate(ctx, at, sink, opt, nil); err != nil {
		return nil, err
	}
	return &kept.Memory, sink.Close()
}

// firstRanks keeps what the page draws.
type firstRanks struct {
	trace.Memory
	keep map[trace.TrackID]bool
	net  *ports // nil: not drawn
}

// Track notes whether a track is drawn.
func (f *firstRanks) Track(t trace.Track) trace.TrackID {
	id := f.Memory.Track(t)
	if f.net != nil {
		f.net.track(id, &t)
	}
	f.keep[id] = t.Process < nccl.RankPID+timelineRanks || t.Process == nccl.CriticalPID
	return id
}

// Emit keeps an event of a track that is drawn.
func (f *firstRanks) Emit(e *trace.Event) {
	if f.net != nil {
		f.net.emit(e)
	}
	if f.keep[e.Track] {
		f.Memory.Emit(e)
	}
}

// points fills the curves and the cost map.
func (d *drawn) points(p *page) error {
	rivals := map[[2]uint8]*rival{}
	for i, l := range d.lines {
		if l.Count == 0 {
			continue
		}
		o, err := d.Outcome(l.Operation)
		if err != nil {
			return err
		}
		row := &d.rows[i]
		f := &row.Facts
		x := point{Size: l.Shown, TimeUs: row.Out.Time.Micros(), BusBW: row.Out.BusBW, LimitBW: f.Expect,
			Choice: f.Algo, Channels: f.Channels, Link: f.Limit}
		if dr := f.Draws; dr != nil {
			x.Least, x.Most = Sample{l.Shown, dr.MostUs, dr.LeastBusBW},
				Sample{l.Shown, dr.LeastUs, dr.MostBusBW}
			x.Draws = dr.Lines(row.Out.BusBW, f.SimUs)
		}
		if o.Choice.Warps > 0 {
			x.Choice = f.Algo + "/" + f.Proto
			x.ModelUs = f.ModelUs
			_, x.ModelBW = coll.Bandwidth(d.Func(), l.Count, l.Type, d.Site.Comm.NRanks,
				units.FromMicros(f.ModelUs))
			addRivals(rivals, &o, len(p.Points), len(d.lines))
		}
		p.Points = append(p.Points, x)
		for _, r := range rivals { //lint:sorted each is filled in the same way
			for len(r.Times) < len(p.Points) {
				r.Times = append(r.Times, 0)
			}
		}
	}
	for _, a := range coll.Algorithms() {
		for _, pr := range coll.Protocols() {
			if r := rivals[[2]uint8{uint8(a), uint8(pr)}]; r != nil {
				p.Rivals = append(p.Rivals, *r)
			}
		}
	}
	return nil
}

// addRivals adds the model's times of one size, the n-th of so many.
func addRivals(rivals map[[2]uint8]*rival, o *scenario.Outcome, n, of int) {
	for _, a := range coll.Algorithms() {
		for _, pr := range coll.Protocols() {
			k := [2]uint8{uint8(a), uint8(pr)}
			if t := o.Choice.Times[a][pr]; t > 0 {
				if rivals[k] == nil {
					rivals[k] = &rival{Name: fmt.Sprintf("%s %s", a, pr), Times: make([]float64, n, of)}
				}
				rivals[k].Times = append(rivals[k].Times, float64(t))
			}
		}
	}
}

// best simulates the rivals of every size. Times of the formula have none: there
// NCCL's choice is the best but for its own exceptions.
func (d *drawn) best(ctx context.Context, p *page) error {
	switch {
	case d.Site.Comm.NRanks > bestRanks:
		p.NoBest = fmt.Sprintf("the page simulates other choices up to %d ranks; simccl run … --columns "+
			"+regret,best does at any number", bestRanks)
	case d.Func().IsP2P():
		p.NoBest = "sends and receives have no choice of algorithm and protocol"
	case d.Spec.Engine.Fidelity == "alpha":
		p.NoBest = "by the formula NCCL's choice is the best but for its own exceptions"
	}
	if p.NoBest != "" {
		return nil
	}
	var ops []scenario.Operation
	for _, l := range d.lines {
		if l.Count > 0 {
			ops = append(ops, l.Operation)
		}
	}
	best, err := d.Bests(ctx, ops)
	if err != nil {
		return err
	}
	for i, o := range best {
		if o.Choice.Warps == 0 {
			continue
		}
		x := &p.Points[i]
		chosen, err := d.Outcome(ops[i])
		if err != nil || o.Result.Elapsed <= 0 {
			return err
		}
		share := float64(o.Result.Elapsed) / float64(chosen.Result.Elapsed)
		x.Best, x.BestUs, x.BestBW = o.Label(), x.TimeUs*share, x.BusBW/share
		if o.Choice.Algo != chosen.Choice.Algo || o.Choice.Proto != chosen.Choice.Proto {
			x.Setting = fmt.Sprintf("NCCL_ALGO=%s NCCL_PROTO=%s", o.Choice.Algo, o.Choice.Proto)
		}
	}
	return nil
}

// why explains the choice at the smallest size, the one with the most regret and the
// largest.
func (d *drawn) why(p *page) error {
	var lines []scenario.Line
	for _, l := range d.lines {
		if l.Count > 0 {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 || d.Func().IsP2P() {
		return nil
	}
	worst := 0
	for i := range p.Points {
		if p.Points[i].regret() > p.Points[worst].regret() {
			worst = i
		}
	}
	at := []int{0, worst, len(lines) - 1}
	for i, n := range at {
		if slices.Contains(at[:i], n) {
			continue
		}
		rep, err := explain.New(explain.Input{Comm: d.Site.Comm, Op: d.Op(lines[n].Operation),
			Access: d.Site.Config.Topo.Access})
		var none *tuning.NoChoiceError
		if err != nil && (rep == nil || !errors.As(err, &none)) {
			return err
		}
		p.Why = append(p.Why, rep)
	}
	return nil
}

// machine fills in what does not depend on the operation.
func (d *drawn) machine(p *page) {
	site := d.Site
	host := site.Cluster.Host(0)
	p.System, p.Host, p.NodeOf = host.Systems[0], "node0", site.Comm.NodeOf
	if host.NRanks() <= matrixGPUs {
		var b strings.Builder
		show.Matrix(&b, host.Systems[0])
		p.Matrix = b.String()
	}
	p.Graphs = site.Comm.Domains[0].Graphs
	for i, c := range site.Comm.Channels {
		p.Rings = append(p.Rings, ring{Channel: i, Order: c.Order})
		t := tree{Channel: i, Up: make([]int32, len(c.Tree))}
		for rank, links := range c.Tree {
			t.Up[rank] = links.Up
		}
		p.Trees = append(p.Trees, t)
	}
	for _, row := range config.EnvRows(site.Config, site.Facts(), false) {
		p.Settings = append(p.Settings, setting{Name: row.Name, Value: row.Value, Origin: row.Origin,
			Effect: row.Effect})
	}
	for _, c := range site.Cluster.Classes {
		for _, f := range lint.Check(c.Spec, site.Config.Topo) {
			if f.Severity >= lint.Warning {
				p.Warnings = append(p.Warnings, f.String())
			}
		}
	}
}

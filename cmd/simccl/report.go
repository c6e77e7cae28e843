package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/report/page"
	"github.com/simccl/simccl/report/topology"
	"github.com/simccl/simccl/topo/lint"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

func newReport(a *app) *cobra.Command {
	var r runFlags
	c := &cobra.Command{Use: "report OP", Short: "Write one HTML page about an operation on a machine",
		Long: `report simulates a sweep as run does and writes one self-contained HTML file:
bus bandwidth by size, who wins where, topology with its load, rings, timeline,
paths and settings. It takes run's options.`,
		Example: `  simccl report all_reduce -b 1K -e 16M -f 4
  simccl report all_gather --topo topo.xml --nodes 4 -b 64K -e 4M -f 4 --report all_gather.html
  simccl report all_reduce -b 64K -e 4M -f 4 --measured measured.txt`,
		Args: exactly("OP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			quiet := *a
			quiet.out, quiet.json = io.Discard, false
			if r.out.report == "" {
				r.out.report = "report.html"
			}
			s, err := r.prepare(&quiet, cmd, args[0])
			if err != nil {
				return err
			}
			if err := s.run(cmd.Context()); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"page": r.out.report})
			}
			_, err = fmt.Fprintln(a.out, r.out.report)
			return err
		}}
	r.register(c)
	return c
}

// reportRanks are the ranks whose steps the page draws.
const reportRanks = 2

// writeReport draws the whole run.
func (s *sweep) writeReport(ctx context.Context, last line) error {
	p := page.Page{Title: fmt.Sprintf("%s on %d × %s", s.fn.TestName(), s.m.cluster.NHosts(), s.m.name),
		Command: "simccl " + strings.Join(s.app.args, " ")}
	c := s.m.comm
	p.Facts = []page.Fact{
		{Name: "ranks", Value: fmt.Sprintf("%d, nodes %d", c.NRanks, c.NNodes)},
		{Name: "channels", Value: fmt.Sprintf("%d; NVLS %d; send/recv %d", c.NChannels, c.NVLSChannels, c.P2PChannels)},
		{Name: "NVLink multicast", Value: map[bool]string{true: "on", false: "off"}[c.Multicast]},
		{Name: "rules", Value: "NCCL " + ncclRules}, {Name: "simccl", Value: version},
		{Name: "topology", Value: s.m.name + ", sha256 " + s.m.digest[:12]}, {Name: "seed", Value: fmt.Sprint(s.flags.seed)},
		{Name: "launch", Value: s.flags.launch}, {Name: "times", Value: s.m.class.Summary(s.m.between())}}
	if err := s.reportPoints(&p); err != nil {
		return err
	}
	if err := s.reportBest(ctx, &p); err != nil {
		return err
	}
	s.reportMachine(&p)
	done, err := s.pool.wait(last.point)
	if err != nil {
		return err
	}
	p.Links, p.Elapsed, p.Measured = done.result.Links, done.result.Elapsed, s.measured
	if done.plan != nil && s.flags.fidelity != "alpha" { // a formula has no events
		if p.Timeline, err = s.reportTimeline(ctx, last.point); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := page.Write(&out, &p); err != nil {
		return err
	}
	if err := newfile.Write(s.flags.out.report, out.Bytes()); err != nil {
		return err
	}
	s.app.wrote(s.flags.out.report, "open it in a browser")
	return nil
}

// reportTimeline tells the first ranks' steps and, of communicators that are
// not too large for it, the critical path.
func (s *sweep) reportTimeline(ctx context.Context, at point) (*trace.Memory, error) {
	kept := &firstRanks{keep: map[trace.TrackID]bool{}}
	opt := nccltrace.Options{Detail: nccltrace.DetailStep}
	var sink trace.Sink = kept
	if s.m.comm.NRanks <= pathRanks {
		sink = nccltrace.CriticalPath(kept, s.app.cancelled)
	} else {
		opt.Ranks = func(r int) bool { return r < reportRanks }
	}
	if _, err := s.simulate(ctx, at, sink, opt); err != nil {
		return nil, err
	}
	return &kept.Memory, sink.Close()
}

// pathRanks bounds the communicators whose page has a critical path: for it the
// steps of every rank are looked at.
const pathRanks = 72

// firstRanks keeps what the page draws.
type firstRanks struct {
	trace.Memory
	keep map[trace.TrackID]bool
}

// Track notes whether a track is drawn.
func (f *firstRanks) Track(t trace.Track) trace.TrackID {
	id := f.Memory.Track(t)
	f.keep[id] = t.Process < nccltrace.RankPID+reportRanks || t.Process == nccltrace.CriticalPID
	return id
}

// Emit keeps an event of a track that is drawn.
func (f *firstRanks) Emit(e *trace.Event) {
	if f.keep[e.Track] {
		f.Memory.Emit(e)
	}
}

// reportPoints fills the curves and the cost map with the sizes of the first
// type, reduction and root.
func (s *sweep) reportPoints(p *page.Page) error {
	rivals := map[[2]uint8]*page.Rival{}
	for i, l := range s.lines()[:len(s.sizes)] {
		if l.count == 0 {
			continue
		}
		o, err := s.pool.wait(l.point)
		if err != nil {
			return err
		}
		row := &s.rows[i]
		f := s.facts(row, &o)
		x := page.Point{Size: l.shown, TimeUs: row.Out.TimeUs, BusBW: row.Out.BusBW, LimitBW: f.Expect, Choice: f.Algo, Channels: f.Channels, Link: f.Limit}
		if o.choice.Warps > 0 {
			x.Choice = f.Algo + "/" + f.Proto
			x.ModelUs = f.ModelUs
			_, x.ModelBW = coll.Bandwidth(s.fn, l.count, l.typ, s.m.comm.NRanks, units.FromMicros(f.ModelUs))
			for _, a := range coll.Algorithms() {
				for _, pr := range coll.Protocols() {
					k := [2]uint8{uint8(a), uint8(pr)}
					if t := o.choice.Times[a][pr]; t > 0 {
						if rivals[k] == nil {
							rivals[k] = &page.Rival{Name: fmt.Sprintf("%s %s", a, pr), Times: make([]float64, len(p.Points), len(s.sizes))}
						}
						rivals[k].Times = append(rivals[k].Times, float64(t))
					}
				}
			}
		}
		p.Points = append(p.Points, x)
		for _, r := range rivals { //lint:sorted all are filled alike
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

// bestRanks bounds the communicators whose page has the best of all choices:
// every rival is simulated for it.
const bestRanks = 64

// reportBest simulates the rivals of every size. Times of the formula have none:
// there NCCL's choice is the best but for its own exceptions.
func (s *sweep) reportBest(ctx context.Context, p *page.Page) error {
	if s.m.comm.NRanks > bestRanks || s.fn.IsP2P() || s.flags.fidelity == "alpha" {
		return nil
	}
	var points []point
	for _, l := range s.lines()[:len(s.sizes)] {
		if l.count > 0 {
			points = append(points, l.point)
		}
	}
	best, err := s.bests(ctx, points)
	if err != nil {
		return err
	}
	for i, o := range best {
		if o.choice.Warps == 0 {
			continue
		}
		x := &p.Points[i]
		x.Best, x.BestUs = label(&o.choice), o.result.Elapsed.Micros()
		_, x.BestBW = coll.Bandwidth(s.fn, points[i].count, points[i].typ, s.m.comm.NRanks, o.result.Elapsed)
	}
	return nil
}

// readMeasured reads the results of --measured.
func (s *sweep) readMeasured() (out []page.Measured, err error) {
	if len(s.flags.out.measured) > 0 && s.flags.out.report == "" {
		return nil, usage("--measured: is drawn on the page; write --report FILE.html as well")
	}
	for _, name := range s.flags.out.measured {
		program, rows, err := s.app.readResults(name)
		if err != nil {
			return nil, input(err)
		}
		if program != "" && program != s.config.Program {
			return nil, input(fmt.Errorf("%s: has results of %s, the page is of %s; measure the same operation", name, program, s.config.Program))
		}
		m := page.Measured{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))}
		for _, r := range rows {
			if len(m.Points) > 0 && int64(m.Points[len(m.Points)-1].Size) >= r.Size {
				continue // of a further root, type or cycle
			}
			m.Points = append(m.Points, page.Sample{Size: units.Bytes(r.Size), TimeUs: r.Out.TimeUs, BusBW: r.Out.BusBW})
		}
		out = append(out, m)
	}
	return out, nil
}

// readResults reads what nccl-tests, bench or run printed, or wrote with -J,
// and the name of the program if the file says it.
func (a *app) readResults(name string) (program string, rows []nccltests.Row, err error) {
	data, err := a.read(name, maxResults)
	if err != nil {
		return "", nil, err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		t, err := nccltests.Parse(bytes.NewReader(data))
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", name, err)
		}
		return t.Config.Program, t.Rows, nil
	}
	r, err := nccltests.ParseJSON(data)
	if err == nil && r == nil {
		err = errors.New("JSON, but not of nccl-tests' -J: no results")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return r.Config.Program, r.Rows, nil
}

// maxMatrix bounds the GPUs of a path matrix that is shown.
const maxMatrix = 72

func (s *sweep) reportMachine(p *page.Page) {
	host := s.m.cluster.Host(0)
	p.System, p.Host, p.NodeOf = host.Systems[0], "node0", s.m.comm.NodeOf
	if host.NRanks() <= maxMatrix {
		var b strings.Builder
		topology.Matrix(&b, host.Systems[0])
		p.Matrix = b.String()
	}
	p.Graphs = s.m.comm.Domains[0].Graphs
	for i, c := range s.m.comm.Channels {
		p.Rings = append(p.Rings, page.Ring{Channel: i, Order: c.Order})
		t := page.Tree{Channel: i, Up: make([]int32, len(c.Tree))}
		for rank, links := range c.Tree {
			t.Up[rank] = links.Up
		}
		p.Trees = append(p.Trees, t)
	}
	for _, row := range config.EnvRows(s.m.cfg, config.FactsOf(s.m.comm), false) {
		p.Settings = append(p.Settings, page.Setting{Name: row.Name, Value: row.Value, Origin: row.Origin, Effect: row.Effect})
	}
	for _, c := range s.m.cluster.Classes {
		for _, f := range lint.Check(c.Spec, s.m.cfg.Topo) {
			if f.Severity >= lint.Warning {
				p.Warnings = append(p.Warnings, f.String())
			}
		}
	}
}

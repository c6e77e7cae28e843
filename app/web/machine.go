package web

import (
	"cmp"
	"context"
	"fmt"

	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/lint"
	"github.com/simccl/simccl/units"
)

// Hello lists what the page offers: machines, releases, operations, columns.
type Hello struct {
	Program    string         `json:"program"`
	Releases   []string       `json:"releases"`
	Release    string         `json:"release"` // without a choice
	Operations []string       `json:"operations"`
	Types      []string       `json:"types"`
	Reductions []string       `json:"reductions"`
	Machines   []MachineEntry `json:"machines"`
	Settings   []SettingEntry `json:"settings"`
	Networks   Networks       `json:"networks"`
	Words      []explain.Word `json:"words"` // the glossary
	Walk       []explain.Word `json:"walk"`  // one all_reduce from call to wire
}

// MachineEntry is a built-in machine.
type MachineEntry struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Domain int    `json:"domain,omitempty"` // hosts of an NVLink domain
}

// SettingEntry is a variable that simccl takes into account.
type SettingEntry struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Meaning string `json:"meaning"`
}

func (s *Service) hello(context.Context, *Query, Emit) (any, error) {
	h := Hello{Program: s.program, Release: rules.Default().Release.String(), Networks: networks(),
		Words: explain.Words(), Walk: explain.Walk()}
	for _, r := range rules.Known() {
		h.Releases = append(h.Releases, r.String())
	}
	for _, f := range coll.Funcs() {
		h.Operations = append(h.Operations, f.TestName())
	}
	for _, t := range coll.DataTypes() {
		h.Types = append(h.Types, t.TestName())
	}
	for _, o := range coll.RedOps() {
		h.Reductions = append(h.Reductions, o.TestName())
	}
	for _, m := range builtin.NVIDIA() {
		h.Machines = append(h.Machines, MachineEntry{m.Name, m.Title, m.Domain})
	}
	for _, v := range config.Vars() {
		if v.Honoured() {
			h.Settings = append(h.Settings, SettingEntry{v.Name, v.Default, v.Meaning})
		}
	}
	return h, nil
}

// Machine is a machine as the page draws it: one host, and what joins all ranks.
type Machine struct {
	Name      string    `json:"name"`
	NCCL      string    `json:"nccl"`
	Ranks     int       `json:"ranks"`
	Nodes     int       `json:"nodes"`
	Hosts     int       `json:"hosts"`
	Channels  int       `json:"channels"`
	NVLS      int       `json:"nvlsChannels"`
	P2P       int       `json:"p2pChannels"`
	Multicast bool      `json:"multicast"`
	Times     string    `json:"times"` // the machine class, and how sure its times are
	Command   string    `json:"command"`
	Devices   []Device  `json:"devices"`
	Links     []Link    `json:"links"`
	Width     float64   `json:"width"` // of the drawing, px
	Height    float64   `json:"height"`
	Lines     []Line    `json:"lines"` // of it
	Paths     Paths     `json:"paths"`
	NodeOf    []int32   `json:"nodeOf"` // rank → node
	Rings     [][]int32 `json:"rings"`  // by channel, ranks in order
	Trees     [][]int32 `json:"trees"`  // by channel, the rank above each rank, -1 at the root
	Kept      int       `json:"kept"`   // channels in Rings and Trees
	Graphs    []Graph   `json:"graphs"`
	Settings  []Setting `json:"settings"`
	Warnings  []string  `json:"warnings"`
	NICs      []string  `json:"nics"` // names, of faults
	NICGbps   float64   `json:"nicGbps"`
	Findings  []string  `json:"findings"`
}

// Device is a part of a host.
type Device struct {
	Kind  string `json:"kind"`  // GPU, PCI, NVS, CPU, NIC, NET, DEV, GIN
	Label string `json:"label"` // short, as links are named
	Title string `json:"title"`
	Rank  int    `json:"rank"` // of a GPU, within the host
	// Boxes are where it is drawn; none of a NIC that is drawn as its only port.
	Boxes []page.Box `json:"boxes"`
	Name  string     `json:"name"` // in the box
}

// Line is a line of the drawing: an SVG path, and the Links that it represents.
type Line struct {
	Path  string        `json:"path"`
	Links []topo.LinkID `json:"links"`
}

// Link is a directed link between Devices.
type Link struct {
	From int     `json:"from"`
	To   int     `json:"to"`
	Kind string  `json:"kind"` // NVL, PCI, SYS, NET, C2C, LOC
	GBps float32 `json:"gbps"`
}

// Paths is the matrix of paths between GPUs and NICs.
type Paths struct {
	Ends []string `json:"ends"`
	// Rows are where data starts. Kind and bandwidth of a cell, "" on the diagonal.
	Kinds [][]string  `json:"kinds"`
	GBps  [][]float32 `json:"gbps"`
}

// Graph is one pattern that NCCL searched for.
type Graph struct {
	Name     string  `json:"name"`
	Channels int     `json:"channels"`
	Intra    float32 `json:"bwIntra"` // GB/s of a channel
	Inter    float32 `json:"bwInter"`
	TypeIn   string  `json:"typeIntra"`
	TypeOut  string  `json:"typeInter"`
}

// Setting is a variable in force.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Effect string `json:"effect"`
}

const (
	// matrixEnds bounds the GPUs and NICs of the path matrix.
	matrixEnds = 160
	// drawnRanks bounds what of rings and trees is passed on, ranks times channels.
	drawnRanks = 1 << 18
)

func (s *Service) machine(ctx context.Context, q *Query, _ Emit) (any, error) {
	if err := q.Spec.Validate(); err != nil {
		return nil, err
	}
	x, err := s.site(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	c, site := x.site.Comm, x.site
	sys := site.Cluster.Host(0).Systems[0]
	m := &Machine{Name: site.Name, NCCL: site.Config.Rules.Version(), Ranks: c.NRanks, Nodes: c.NNodes,
		Hosts: site.Cluster.NHosts(), Channels: c.NChannels, NVLS: c.NVLSChannels,
		P2P: c.P2PChannels, Multicast: c.Multicast, Times: site.Times(), Command: Command(&q.Spec),
		NodeOf: c.NodeOf, Warnings: x.warnings,
		Rings: [][]int32{}, Trees: [][]int32{}, Settings: []Setting{}, NICs: []string{}, Findings: []string{},
		Lines: []Line{}}
	m.draw(sys)
	m.paths(sys)
	m.channels(x.site)
	for _, row := range config.EnvRows(site.Config, site.Facts(), false) {
		m.Settings = append(m.Settings, Setting{row.Name, row.Value, row.Origin, row.Effect})
	}
	for _, k := range site.Cluster.Classes {
		for _, f := range lint.Check(k.Spec, site.Config.Topo) {
			if f.Severity >= lint.Warning {
				m.Findings = append(m.Findings, f.String())
			}
		}
	}
	return m, check(ctx)
}

// draw lists the devices and links of a host.
func (m *Machine) draw(sys *topo.System) {
	drawn := page.LayOut(sys)
	m.Width, m.Height = drawn.Width, drawn.Height
	for i := range drawn.Lines {
		l := &drawn.Lines[i]
		m.Lines = append(m.Lines, Line{l.Path(page.BoxPoint{}), l.Links})
	}
	for i := range sys.Nodes {
		id, n := topo.NodeID(i), &sys.Nodes[i]
		d := Device{Kind: n.Kind.String(), Label: sys.Short(id), Title: sys.Name(id), Rank: -1,
			Boxes: drawn.Boxes[i], Name: page.LabelOf(sys, id)}
		if d.Boxes == nil {
			d.Boxes = []page.Box{}
		}
		switch n.Kind {
		case topo.GPU:
			d.Rank, d.Title = n.GPU.Rank, fmt.Sprintf("%s, sm_%d, %s", d.Title, n.GPU.SM, n.GPU.BusID)
		case topo.NET:
			d.Title = fmt.Sprintf("%s, %.1f GB/s", n.Net.Name, n.Net.BW)
			m.NICs = append(m.NICs, n.Net.Name)
			m.NICGbps = max(m.NICGbps, float64(n.Net.BW)*8)
		}
		m.Devices = append(m.Devices, d)
	}
	for i := range sys.Links {
		l := &sys.Links[i]
		m.Links = append(m.Links, Link{int(l.From), int(l.To), l.Kind.String(), float32(l.BW)})
	}
}

// paths fills the matrix, of hosts that are not too large for one.
func (m *Machine) paths(sys *topo.System) {
	ends := append(append([]topo.NodeID{}, sys.Of(topo.GPU)...), sys.Of(topo.NET)...)
	m.Paths = Paths{Ends: []string{}, Kinds: [][]string{}, GBps: [][]float32{}}
	if len(ends) > matrixEnds {
		return
	}
	for _, a := range ends {
		m.Paths.Ends = append(m.Paths.Ends, sys.Short(a))
		var kinds []string
		var speeds []float32
		for _, b := range ends {
			kind, speed := "", float32(0)
			if a != b {
				p := sys.Path(a, b)
				kind, speed = p.Kind.String(), float32(p.BW)
			}
			kinds, speeds = append(kinds, kind), append(speeds, speed)
		}
		m.Paths.Kinds, m.Paths.GBps = append(m.Paths.Kinds, kinds), append(m.Paths.GBps, speeds)
	}
}

// channels fills rings, trees and graphs.
func (m *Machine) channels(site *scenario.Site) {
	c := site.Comm
	for _, ch := range c.Channels {
		if (len(m.Rings)+1)*c.NRanks > drawnRanks {
			break
		}
		up := make([]int32, len(ch.Tree))
		for rank, links := range ch.Tree {
			up[rank] = links.Up
		}
		m.Rings, m.Trees = append(m.Rings, ch.Order), append(m.Trees, up)
	}
	m.Kept = len(m.Rings)
	for _, g := range c.Domains[0].Graphs {
		if g != nil && g.NChannels > 0 {
			m.Graphs = append(m.Graphs, Graph{g.Name, g.NChannels, float32(g.BWIntra), float32(g.BWInter),
				g.TypeIntra.String(), g.TypeInter.String()})
		}
	}
}

// Model is what NCCL's cost model says at each size of a Spec.
type Model struct {
	Sizes  []int64  `json:"sizes"`
	Labels []string `json:"labels"`
	// Choice is the winner at a size, "" where nothing is chosen; Us its time, BusBW
	// that as bus bandwidth.
	Choice   []string  `json:"choice"`
	Channels []int     `json:"channels"`
	Us       []float64 `json:"us"`
	BusBW    []float64 `json:"busbw"`
	Rivals   []Rival   `json:"rivals"`
	Notes    []string  `json:"notes"`
}

// Rival is one algorithm and protocol with its times, 0 where it is off.
type Rival struct {
	Algo  string    `json:"algo"`
	Proto string    `json:"proto"`
	Us    []float64 `json:"us"`
}

func (s *Service) model(ctx context.Context, q *Query, _ Emit) (any, error) {
	r, x, err := s.running(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	m := &Model{Notes: []string{}, Rivals: []Rival{}}
	lines := firstLines(r)
	var times [coll.NumAlgorithms][coll.NumProtocols][]float64
	for i, l := range lines {
		op := l.Op(r.Func())
		_, choice, err := x.site.Comm.Request(op)
		if err != nil {
			return nil, err
		}
		m.Sizes, m.Labels = append(m.Sizes, int64(l.Shown)), append(m.Labels, sizeName(int64(l.Shown)))
		name, channels, us, bus := "", 0, 0.0, 0.0
		if choice.Warps > 0 {
			name, channels, us = choice.Algo.String()+" "+choice.Proto.String(), choice.MaxChannels,
				float64(choice.TimeUs)
			_, bus = coll.Bandwidth(r.Func(), l.Count, l.Type, x.site.Comm.NRanks, units.FromMicros(us))
			for _, a := range coll.Algorithms() {
				for _, p := range coll.Protocols() {
					if t := choice.Times[a][p]; t > 0 {
						times[a][p] = append(times[a][p], make([]float64, i-len(times[a][p]))...)
						times[a][p] = append(times[a][p], float64(t))
					}
				}
			}
		}
		m.Choice, m.Channels, m.Us, m.BusBW = append(m.Choice, name), append(m.Channels, channels),
			append(m.Us, us), append(m.BusBW, bus)
	}
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			if t := times[a][p]; t != nil {
				m.Rivals = append(m.Rivals, Rival{a.String(), p.String(),
					append(t, make([]float64, len(lines)-len(t))...)})
			}
		}
	}
	return m, check(ctx)
}

// firstLines are the lines of the first type, reduction and root.
func firstLines(r *scenario.Running) []scenario.Line {
	lines := r.Lines()
	if n, err := r.Spec.Workload.AllSizes(); err == nil {
		return lines[:min(len(n), len(lines))]
	}
	return lines
}

// sizeName prints a size with the largest binary unit that divides it.
func sizeName(b int64) string {
	for _, u := range []struct {
		by   int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.by && b%u.by == 0 {
			return fmt.Sprintf("%d %s", b/u.by, u.name)
		}
	}
	return fmt.Sprintf("%d B", cmp.Or(b, 0))
}

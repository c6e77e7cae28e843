package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm/decision"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/report/rings"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/tuning"
	"github.com/spf13/cobra"
)

// decisionError types what the stages refuse.
func decisionError(err error) error {
	var mask *coll.MaskError
	var none *tuning.NoChoiceError
	var split *topo.SplitHostsError
	var bad topoxml.Errors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mask), errors.As(err, &none):
		return &statusError{code: exitUsage, err: err}
	case errors.As(err, &split):
		return &statusError{code: exitNotImplemented, err: err}
	case errors.As(err, &bad):
		return input(err)
	case errors.Is(err, plan.ErrUnsupported):
		return &statusError{code: exitNotImplemented, err: err}
	}
	return err
}

func newInspect(a *app) *cobra.Command {
	var m machineFlags
	log := false
	c := &cobra.Command{Use: "inspect", Short: "Print the whole decision",
		Long: `inspect prints what NCCL decides for a machine: system and paths, graphs before
and after all ranks agree, channels, cost model, and the choice with its
chunking for every power of two. --json prints all of it as one document.`,
		Example: `  simccl inspect --topo topo.xml --nodes 2 --json
  simccl inspect --topo topo.xml -g 4 --multicast off`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.load(a)
			if err != nil {
				return err
			}
			switch {
			case log:
				return x.ncclLog(a.out)
			case !a.json:
				return x.summary(a)
			}
			text, err := x.document(a)
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		}}
	m.register(c)
	c.Flags().BoolVar(&log, "nccl-log", false, "print what NCCL_DEBUG=INFO would show of it")
	return c
}

// document is the whole decision as JSON, ending with a line feed.
func (x *machine) document(a *app) ([]byte, error) {
	given, err := x.given(a)
	if err != nil {
		return nil, err
	}
	doc, err := decision.New(x.comm, given)
	if err != nil {
		return nil, decisionError(err)
	}
	text, err := doc.Encode()
	return append(bytes.TrimRight(text, "\n"), '\n'), err
}

// given is what the decision document holds of files and flags.
func (x *machine) given(a *app) (decision.Given, error) {
	host := x.cluster.Host(0)
	g := decision.Given{Nodes: x.cluster.NHosts(), GPUsPerNode: host.NRanks(), Env: map[string]string{}, Notes: []string{}}
	for _, row := range x.settings() {
		g.Env[row[0]] = row[1]
	}
	if host.Dump != nil {
		g.TopoXML = string(topoxml.Write(host.Dump))
	}
	graphs, err := topoxml.WriteGraphs(host.Systems[0], x.comm.Domains[0].Graphs)
	if err != nil {
		a.warn("no graph file: %v", err)
	}
	g.GraphXML = string(graphs)
	return g, nil
}

// summary prints the decision for people.
func (x *machine) summary(a *app) error {
	c := x.comm
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d ranks on %d nodes", x.name, c.NRanks, c.NNodes)
	if x.comm.Multicast {
		b.WriteString(", NVLink multicast")
	}
	b.WriteString("\n\n")
	fmt.Fprintf(&b, "%-16s %8s %10s %10s %6s %6s %9s\n", "graph", "channels", "intra GB/s", "inter GB/s", "intra", "inter", "cross NIC")
	for _, g := range c.Domains[0].Graphs {
		if g == nil || g.NChannels == 0 {
			continue
		}
		fmt.Fprintf(&b, "%-16s %8d %10.1f %10.1f %6s %6s %9d\n", g.Name, g.NChannels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC)
	}
	fmt.Fprintf(&b, "\nchannels %d, for collectives %d, NVLS %d, send/recv %d (%d a peer)\n\n",
		c.NChannels, c.CollChannels, c.NVLSChannels, c.P2PChannels, c.P2PChannelsPerPeer)
	if c.NRanks > 1 {
		if err := x.choices(&b); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// choices lists who wins at which sizes.
func (x *machine) choices(b *strings.Builder) error {
	fmt.Fprintf(b, "%-14s %16s %16s  %s\n", "collective", "from bytes", "to bytes", "choice")
	for _, f := range coll.CollFuncs() {
		segs, err := x.comm.Model.Segments(tuning.Op{Func: f, Type: coll.Float32}, 16<<30)
		if err != nil {
			fmt.Fprintf(b, "%-14s %s\n", f.TestName(), err)
			continue
		}
		for _, s := range segs {
			fmt.Fprintf(b, "%-14s %16d %16d  %s/%s\n", f.TestName(), s.From, s.To, s.Algo, s.Proto)
		}
	}
	return nil
}

func newGraph(a *app) *cobra.Command {
	var m machineFlags
	format := ""
	c := &cobra.Command{Use: "graph", Short: "Print NCCL's graphs",
		Long: `graph prints the searched graphs of the first node (xml as NCCL_GRAPH_DUMP_FILE
holds them, or text), or the channels that join all ranks of the cluster with the
nets between hosts (rings, json, or dot for Graphviz).`,
		Example: "  simccl graph --topo dgx.xml --nodes 4 --format dot | dot -Tsvg > rings.svg",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.load(a)
			if err != nil {
				return err
			}
			if a.json {
				format = "json"
			}
			switch format {
			case "xml":
				text, err := topoxml.WriteGraphs(x.cluster.Host(0).Systems[0], x.comm.Domains[0].Graphs)
				if err != nil {
					return err
				}
				_, err = a.out.Write(text)
				return err
			case "text":
				return x.printGraphs(a)
			}
			return x.printChannels(a, format)
		}}
	m.register(c)
	c.Flags().StringVar(&format, "format", "text", "xml, text, rings, json or dot")
	return c
}

// printChannels shows the channels over all ranks.
func (x *machine) printChannels(a *app, format string) error {
	switch format {
	case "rings":
		fmt.Fprint(a.out, rings.Text(x.comm.Comm, x.cluster))
	case "dot":
		fmt.Fprint(a.out, rings.Dot(x.comm.Comm, x.cluster))
	case "json":
		e := json.NewEncoder(a.out)
		e.SetIndent("", "  ")
		return e.Encode(rings.JSON(x.comm.Comm, x.cluster))
	default:
		return usage("--format %s: write xml, text, rings, json or dot", format)
	}
	return nil
}

func (x *machine) printGraphs(a *app) error {
	var b strings.Builder
	d := &x.comm.Domains[0]
	name := map[uint64]string{} // NCCL's id of a net → its name
	for _, n := range d.System.Of(topo.NET) {
		name[d.System.Nodes[n].Ident] = d.System.Name(n)
	}
	gpu := map[int]string{} // local rank → its name
	for _, n := range d.System.Of(topo.GPU) {
		gpu[d.System.Nodes[n].GPU.Rank] = d.System.Name(n)
	}
	for _, g := range d.Graphs {
		if g == nil || g.NChannels == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s: %d channels, %.1f/%.1f GB/s, type %s/%s, crossNic %d\n", g.Name, g.NChannels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC)
		for c := range g.NChannels {
			line := []string{}
			if g.Inter[c] != [2]uint64{} {
				line = append(line, name[g.Inter[c][0]])
			}
			for _, r := range g.Intra[c] {
				line = append(line, gpu[r])
			}
			if g.Inter[c] != [2]uint64{} {
				line = append(line, name[g.Inter[c][1]])
			}
			fmt.Fprintf(&b, "%3d : %s\n", c, strings.Join(line, " "))
		}
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// Command accuracy shows what docs/results/ACCURACY.md sums up, point by point, and fits
// quantities of the measured class:
//
//	go run ./dev/cmd/accuracy show default_4 -op all_reduce -proto LL
//	go run ./dev/cmd/accuracy fit gap_ll,ll_recv -set all -proto LL
//	go run ./dev/cmd/accuracy public oci,h100_2n
//	go run ./dev/cmd/accuracy vendors b200 -fit gap_ll,ll_hop
//	go run ./dev/cmd/accuracy vendors page > docs/results/ACCURACY-GPUS.md
//
// It is run in the repository's root; the published tables are in ../shared.
//
// serving simulates published times of kernels of serving and prints how far off they are, by kind and
// kernel, halves apart: the half that classes were fitted to, and the other. A row is of the first half where
// the SHA-1 hash of its list's name and its size is even. Eager calls, pushes, RTX PRO 6000, GB200 and what
// goes between nodes were set by all rows. "over" marks a kind that misses its bar in either half.
//
//	go run ./dev/cmd/accuracy serving ../shared/reference/serving.json
//
// judge says how well simccl diagnose does:
//
//	judge tables             published tables: as expected; the same 1.7 times as slow from 1 MiB on, and
//	                         cut like those of cuts: slower
//	judge cuts               of several nodes, cut to 1/2, 1/4 and 1/8 of the plateau: what is suspected
//	judge causes             causes that maintainers found
//	judge faults -draws 10   faults that the simulator makes, and none
//	judge regimes            what published tables say of the errors of classes: the "regimes" of
//	                         sim/gpu/networks and of classes that no fit made
//
// -half fit is the half of the tables and causes that rules may be chosen on, held the other (the hash of
// accuracy.Fitted). Each answer is a line of JSON in -log, which a second run goes on from.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/simccl/simccl/dev/accuracy"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
)

func main() {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "judge":
		os.Args = os.Args[1:]
		judge()
		return
	case len(os.Args) > 1 && os.Args[1] == "serving":
		os.Args = os.Args[1:]
		serving()
		return
	}
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: accuracy show SET,… | fit QUANTITY,… | public PREFIX,… | vendors " +
	"GPU,…|all|page [flags]; " +
	"-h after one of them lists its flags; accuracy judge QUESTION; accuracy serving FILE")

// command is what the flags say.
type command struct {
	choice        accuracy.Choice
	sets, ops     string
	protos, class string
	topos, data   string
	tables        string
	sheets        string
	also, machine string
	quantities    string
	holdout       int
	each          bool
}

func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	var c command
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.StringVar(&c.sets, "set", "all", "fit: beginnings of names of sets (testdata/measured/README.md)")
	f.StringVar(&c.ops, "op", "", "operations, as nccl-tests calls them")
	f.StringVar(&c.protos, "proto", "", "protocols: LL, LL128, Simple, P2P")
	f.StringVar(&c.class, "class", "", "quantities of the class to change, name=value,…")
	f.Int64Var(&c.choice.Least, "least", 0, "least bytes")
	f.Int64Var(&c.choice.Most, "most", 0, "most bytes; 0: all")
	f.IntVar(&c.choice.Step, "step", 1, "every so many-th place")
	held := f.Bool("held", false, "show: the sizes of odd place, which fits do not see")
	f.StringVar(&c.topos, "topos", "testdata/topos", "directory of topologies")
	f.StringVar(&c.data, "measured", "testdata/measured/h200x4", "directory of measured files")
	f.StringVar(&c.quantities, "fit", "", "vendors: fit QUANTITY,…, or all, in place of comparing")
	f.StringVar(&c.also, "also", "", "fit: directory of further files, as simccl calibrate fit reads")
	f.StringVar(&c.machine, "machine", "dgx-h200", "topology of -also")
	f.IntVar(&c.holdout, "holdout", 2, "fit: every so many-th size is held out")
	f.StringVar(&c.sheets, "sheets", "../shared/reference", "directory of vendors' sweeps")
	f.BoolVar(&c.each, "points", false, "vendors: every point")
	f.StringVar(&c.tables, "tables", "../shared/measured/public", "directory of published tables")
	if err := f.Parse(args[2:]); err != nil {
		return err
	}
	c.choice.Ops, c.choice.Protocols = list(c.ops), list(c.protos)
	switch args[0] {
	case "show":
		c.choice.Sets, c.choice.Places = list(args[1]), accuracy.Even
		if *held {
			c.choice.Places = accuracy.Odd
		}
		return c.show(ctx, w)
	case "fit":
		c.choice.Sets = list(c.sets)
		return c.fit(ctx, w, list(args[1]))
	case "vendors":
		switch {
		case args[1] == "page":
			page, err := accuracy.VendorPage(ctx, os.DirFS(c.sheets))
			fmt.Fprint(w, page)
			return err
		case c.quantities != "":
			return c.fitVendors(ctx, w, list(args[1]), list(c.quantities))
		}
		return c.vendors(ctx, w, list(args[1]), *held)
	case "public":
		return c.public(ctx, w, list(args[1]))
	}
	return errUsage
}

// list splits a comma-separated list; empty text is an empty list.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// points are the measured points that the flags choose.
func (c *command) points() ([]calibrate.Point, error) {
	all, err := accuracy.Measured(os.DirFS(c.topos), os.DirFS(c.data), "procs", "more")
	if err != nil {
		return nil, err
	}
	points := c.choice.Of(all)
	if len(points) == 0 {
		return nil, errors.New("no measured point is meant")
	}
	return points, nil
}

// show lists simulated beside measured times.
func (c *command) show(ctx context.Context, w io.Writer) error {
	class, err := accuracy.ClassWith(c.class)
	if err != nil {
		return err
	}
	points, err := c.points()
	if err != nil {
		return err
	}
	all, err := accuracy.Simulate(ctx, points, &class)
	for i := range all {
		p := &all[i]
		req := p.Request()
		fmt.Fprintf(w, "%-18s %-14v %12d %v/%-6v ch %2d meas %10.2f sim %10.2f %+6.1f%%\n",
			p.Set(), p.Op.Func, p.Bytes, req.Algo, req.Proto, req.Channels, p.Us, p.Sim, 100*p.Off())
	}
	return err
}

// fit fits quantities to the points of even place, and prints them with their
// uncertainty.
func (c *command) fit(ctx context.Context, w io.Writer, quantities []string) error {
	class, err := accuracy.ClassWith(c.class)
	if err != nil {
		return err
	}
	points, err := c.points()
	if err != nil {
		return err
	}
	return c.fitTo(ctx, w, points, class, quantities)
}

// further are the points of -also, without multicast, as the machines of testdata/measured were.
func (c *command) further() ([]calibrate.Point, error) {
	if c.also == "" {
		return nil, nil
	}
	ignore := func(string) {}
	runs, err := calibrate.ReadAll(os.DirFS(c.also), []string{"NCCL_NVLS_ENABLE=0"}, ignore)
	if err != nil {
		return nil, err
	}
	node := scenario.Nodes{Topo: c.machine, Count: 1}
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{node}}}
	lab, _, err := calibrate.NewLab(spec, scenario.Options{})
	if err != nil {
		return nil, err
	}
	points, _, err := lab.Prepare(runs)
	choice := c.choice
	choice.Sets = []string{"all"}
	return choice.Of(points), err
}

// fitTo fits quantities of a class to points; "all" is all that times depend on.
func (c *command) fitTo(ctx context.Context, w io.Writer, points []calibrate.Point, class gpu.Class,
	quantities []string) error {
	if slices.Equal(quantities, []string{"all"}) {
		quantities = nil
	}
	more, err := c.further()
	if err != nil {
		return err
	}
	points = append(points, more...)
	r, err := calibrate.Fit(ctx, points, class, calibrate.Options{Quantities: quantities, Holdout: c.holdout,
		Round: func(n int, cost float64) { fmt.Fprintf(w, "round %d: %.1f\n", n, cost) }})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d points, cost %.1f to %.1f\n", len(points), r.Cost[0], r.Cost[1])
	var set []string
	for _, e := range r.Estimates {
		set = append(set, fmt.Sprintf("%s=%.4g", e.Name, e.Value))
	}
	fmt.Fprintf(w, "-class %s\n", strings.Join(set, ","))
	for _, e := range r.Estimates {
		fmt.Fprintf(w, "%-20s %10.4g → %10.4g ±%.0f %% times %.3f %t\n", e.Name, e.Before, e.Value,
			100*e.Uncertainty, e.Value/e.Before, e.Identified)
	}
	return nil
}

// public lists simulated beside published bandwidths.
func (c *command) public(ctx context.Context, w io.Writer, prefixes []string) error {
	d := accuracy.Data{Tables: os.DirFS(c.tables), Topos: os.DirFS(c.topos)}
	found := false
	for _, p := range accuracy.Tables() {
		for _, prefix := range prefixes {
			if !strings.HasPrefix(p.Name(), prefix) {
				continue
			}
			found = true
			rows, _, err := p.Compare(ctx, &d)
			if err != nil {
				return err
			}
			for _, r := range rows {
				fmt.Fprintf(w, "%-40s %12d %-18s real %7.2f sim %7.2f %+6.1f%%\n", p.Name(), r.Bytes,
					r.Choice, r.Real, r.Sim, 100*r.Off())
			}
		}
	}
	if !found {
		return fmt.Errorf("no table's name begins with %s", strings.Join(prefixes, " or "))
	}
	return nil
}

// vendors sums up errors of vendors' sweeps, or lists their points.
func (c *command) vendors(ctx context.Context, w io.Writer, keys []string, held bool) error {
	for _, v := range accuracy.Vendors {
		if !slices.Contains(keys, v.Key) && !slices.Contains(keys, "all") {
			continue
		}
		points, err := accuracy.SimulateVendor(ctx, os.DirFS(c.sheets), v.Key, c.class, !held)
		if err != nil {
			return err
		}
		if c.each {
			for i := range points {
				p := &points[i]
				req := p.Request()
				fmt.Fprintf(w, "%-40s %10d %v/%-6v ch %2d meas %10.2f sim %10.2f %+6.1f%%\n", p.Run.Name,
					p.Bytes, req.Algo, req.Proto, req.Channels, p.Us, p.Sim, 100*p.Off())
			}
		}
		accuracy.VendorTable(w, v.Key, points)
	}
	return nil
}

// fitVendors fits quantities, or all that times depend on, to the sweeps of machines that fits may see.
func (c *command) fitVendors(ctx context.Context, w io.Writer, keys, quantities []string) error {
	var points []calibrate.Point
	for _, k := range keys {
		of, err := accuracy.VendorPoints(os.DirFS(c.sheets), k, true)
		if err != nil {
			return err
		}
		points = append(points, of...)
	}
	class, err := accuracy.VendorClass(keys[0], c.class)
	if err != nil {
		return err
	}
	return c.fitTo(ctx, w, points, class, quantities)
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/accuracy"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/diagnose"
)

// bounds are where regimes begin: of sizes, what messages bound and what cables bound; of nodes, one switch,
// several, and networks that a cluster shares.
var (
	sizeBounds = [...]int64{1, 1 << 20, 64 << 20, 1 << 39}
	nodeBounds = [...]int{2, 32, 128, 1 << 20}
)

// regime is a gpu.Regime of a class with the errors of its points, by the machine that they are of.
type regime struct {
	gpu.Regime
	class string
	off   map[string][]float64
}

// regimes prints the regimes of network classes, and of machine classes that no times were fitted for: how
// far simulated times are from those of the published tables that rules may be chosen on. A machine counts
// once, by its mean, and of several the median is taken: what most machines of a network are off by is the
// class's error, and what one alone is off by is that machine's. Tables that their own notes call
// misconfigured are left out.
func regimes(ctx context.Context, shared fs.FS, w io.Writer) error {
	docs, err := documents(shared)
	if err != nil {
		return err
	}
	var all []*regime
	for _, d := range docs {
		if !accuracy.Fitted(d.text("source"), d.text("name")) ||
			strings.HasPrefix(d.text("quality"), "misconfigured") {
			continue
		}
		req, err := d.trial("", "", d).make()
		if err != nil {
			return err
		}
		req.NoSuspects, req.Options.Settings = true, config.Sources{NoEnv: true}
		r, err := diagnose.New(ctx, req)
		if err != nil {
			fmt.Fprintf(w, "left out %s: %v\n", d.text("name"), err)
			continue
		}
		all = d.add(all, r)
	}
	slices.SortFunc(all, func(a, b *regime) int {
		return cmp.Or(strings.Compare(a.class, b.class), strings.Compare(a.Op, b.Op),
			cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.NodesFrom, b.NodesFrom), cmp.Compare(a.From, b.From))
	})
	for _, g := range all {
		line, err := json.Marshal(g.sum())
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\n", g.class, line)
	}
	return nil
}

// add adds the points of a table to the regimes of its class.
func (d document) add(all []*regime, r *diagnose.Report) []*regime {
	class, nodes := r.Site.Class(), r.Site.Comm.NNodes
	of := regime{class: class.Name, Regime: gpu.Regime{Op: d.text("collective")}}
	switch {
	case nodes > 1:
		of.class = cmp.Or(class.Network, "infiniband")
		i := slices.IndexFunc(nodeBounds[:], func(n int) bool { return n > nodes }) - 1
		of.NodesFrom, of.NodesTo = nodeBounds[i], nodeBounds[i+1]-1
	case class.Source == gpu.Estimated:
		of.Ranks = r.Site.Comm.NRanks
	default:
		return all // it has those of its fit
	}
	cloud, _ := d.system("cloud").(string)
	machine := cmp.Or(cloud, d.text("source"))
	for _, z := range r.Sizes {
		i := slices.IndexFunc(sizeBounds[:], func(n int64) bool { return n > z.Bytes }) - 1
		of.From, of.To = sizeBounds[i], sizeBounds[i+1]-1
		k := slices.IndexFunc(all, func(g *regime) bool {
			return g.class == of.class && g.Regime == of.Regime
		})
		if k < 0 {
			k = len(all)
			all = append(all, &regime{of.Regime, of.class, map[string][]float64{}})
		}
		all[k].off[machine] = append(all[k].off[machine], z.Expected[1]/z.Measured-1)
	}
	return all
}

// sum is the regime with its errors: medians of the means of machines.
func (g *regime) sum() gpu.Regime {
	out := g.Regime
	var means, signed []float64
	for _, off := range g.off { //lint:sorted means are sorted below
		sum, abs := 0.0, 0.0
		for _, v := range off {
			sum, abs, out.Max = sum+v, abs+math.Abs(v), max(out.Max, math.Abs(v))
		}
		n := float64(len(off))
		out.Points += len(off)
		means, signed = append(means, abs/n), append(signed, sum/n)
	}
	out.Mean, out.Bias, out.Max = middle(means), middle(signed), math.Round(1000*out.Max)/1000
	return out
}

// middle is the median, to three places.
func middle(v []float64) float64 {
	slices.Sort(v)
	return math.Round(500*(v[(len(v)-1)/2]+v[len(v)/2])) / 1000
}

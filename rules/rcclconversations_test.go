package rules_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/rules"
)

// arch says what the rules of RCCL say for an architecture, each in its own line.
func arch(r *rules.Ruleset, d *datadriven.TestData) string {
	a := ruletest.Word(d, 1)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	from, pxn := r.Topo.PXNFromRanks(a)
	line("known %v, XGMI %v GB/s a link, PXN from %d ranks (%v)", r.Topo.KnownArch(a), r.Topo.XGMIRate(a),
		from,
		pxn)
	c := &r.Connect
	line("%d CUs, %d channels of send/recv a link, both trees up to %d channels", c.CUs(a), c.LinkChannels(a),
		c.TreeHalf(a))
	for _, ranks := range []int{15, 16, 31, 32, 63, 64} {
		chunk, ok := c.NetChunkOf(a, ranks)
		line("  chunks of send/recv of %d ranks: %d KiB (%v)", ranks, chunk>>10, ok)
	}
	p := &r.Plan
	line("warps of %d, trips of LL128 of %d bytes, one slice %v", p.WarpLanes(), p.LL128Grain(),
		p.OneSlice(a))
	for _, nodes := range []int{1, 2, 3} {
		chunk, slice := p.RingSteps(a, nodes)
		line("  %d nodes: unrolled %d, a chunk of %d steps, a slice of %d, batches of %d", nodes,
			p.UnrollOf(a, nodes), chunk, slice, p.Batch(a, nodes))
	}
	t := &r.Tuning
	line("LL128 %v, no Tree alone %v, pipelined %v", t.KnowsLL128(a), t.AloneTreeOff(a), t.PipelinedOn(a))
	line("  threads of LL %d, of LL128 %d, of Simple %d", t.Threads(a, coll.LL), t.Threads(a, coll.LL128),
		t.Threads(a, coll.Simple))
	for _, model := range []int{-1, 0, 3} {
		line("  model %d: table %d, with AMD's NICs %d", model, t.TableOf(a, model, false),
			t.TableOf(a, model, true))
	}
	return b.String()
}

// places says what presets the hosts of a machine have, and which sizes PAT has.
func places(r *rules.Ruleset, _ *datadriven.TestData) string {
	var b strings.Builder
	for _, hosts := range []int{1, 2, 3, 4, 5} {
		fmt.Fprintf(&b, "%d hosts:", hosts)
		for i := range hosts {
			fmt.Fprintf(&b, " %d", r.Search.PresetPlace(i, hosts))
		}
		b.WriteString("\n")
	}
	for _, nodes := range []int{2, 4, 5, 8, 9} {
		w, ok := r.Tuning.PATWindow(nodes)
		fmt.Fprintf(&b, "PAT of %d nodes: %d to %d (%v)\n", nodes, w.From, w.To, ok)
	}
	return b.String()
}

// costs prints a table of the cost model, a line an algorithm or an operation.
func costs(r *rules.Ruleset, d *datadriven.TestData) string {
	n, err := strconv.Atoi(ruletest.Word(d, 1))
	if err != nil || n >= len(r.Tuning.Costs) {
		return "error: no such table"
	}
	t := &r.Tuning.Costs[n]
	var b strings.Builder
	cells := func(name string, c rules.Cells) {
		for a, row := range c {
			if row != ([coll.NumProtocols]float64{}) {
				fmt.Fprintf(&b, "%s %v: %v\n", name, coll.Algorithm(a), row)
			}
		}
	}
	for h, c := range t.HWLat {
		cells("latency over "+[]string{"NVLink", "PCI", "NET"}[h], c)
	}
	cells("share", t.Share[0])
	cells("share beyond two nodes", t.Share[1])
	for p := range coll.NumProtocols {
		if t.TreeShare[p] != ([rules.FactorSizes]float32{}) {
			fmt.Fprintf(&b, "Tree by size, %v: %v\n", coll.Protocol(p), t.TreeShare[p])
		}
		if t.RingShare[p] != ([rules.FactorSizes]float32{}) {
			fmt.Fprintf(&b, "Ring by size, %v: %v\n", coll.Protocol(p), t.RingShare[p])
		}
	}
	for f := range t.Ranges {
		if t.Ranges[f] != ([2]rules.ProtoRange{}) {
			fmt.Fprintf(&b, "%v: LL %v, LL128 %v\n", coll.Func(f), t.Ranges[f][0], t.Ranges[f][1])
		}
		if len(t.Channels[f]) > 0 {
			fmt.Fprintf(&b, "%v: channels %v\n", coll.Func(f), t.Channels[f])
		}
	}
	return b.String()
}

// cites lists the places of a release that are cited, by number.
func cites(r *rules.Ruleset, _ *datadriven.TestData) string {
	var b strings.Builder
	for p := range rules.Place(255) {
		if s := r.Cite(p); s != "" {
			fmt.Fprintf(&b, "%d:%s\n", p, r.Aside(p))
		}
	}
	return b.String()
}

// TestNothingIsBesideNoRules: an error that knows no release has no place in NCCL's source beside it.
func TestNothingIsBesideNoRules(t *testing.T) {
	if s := (*rules.Ruleset)(nil).Aside(rules.AtPATNodes); s != "" {
		t.Error(s)
	}
}

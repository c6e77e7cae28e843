package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/study/diagnose"
)

// called are the kinds of suspects by what the collection of causes calls them.
var called = [...]struct{ cause, kinds string }{
	{"no_gdr", "no-gpudirect"}, {"wrong_hca", "wrong-hca nic-down"}, {"wrong_nic", "numa wrong-hca"},
	{
		"slow_node",
		"slow-node",
	}, {"acs", "acs"}, {"channels", "channels"}, {"mtu", "mtu"}, {"pxn", "pxn release"},
	{"tuning", "setting channels release"}, {"routing", "routing congestion hash-collision"},
	{"host_memory", "host-memory"},
}

// causes are tables with the cause that was found, as far as they are of a collective with a size or a
// bandwidth; what is given is the worst point, the machine's words and the settings.
func causes(shared fs.FS) (out []trial, err error) {
	var all []document
	if err := read(shared, "reference/causes.json", &all); err != nil {
		return nil, err
	}
	for _, d := range all {
		i := slices.IndexFunc(called[:], func(c struct{ cause, kinds string }) bool {
			return c.cause == d.text("kind")
		})
		if i < 0 {
			continue
		}
		t := trial{name: d.text("name"), source: d.text("source"), group: d.text("kind"),
			verdict: diagnose.Slower, kinds: strings.Fields(called[i].kinds)}
		t.make = func() (diagnose.Request, error) { return causeOf(d) }
		out = append(out, t)
	}
	return out, nil
}

// causeOf is what a cause's own words give: times of its collective, GPUs, nodes, settings, and the
// words themselves, in which log lines may be.
func causeOf(d document) (diagnose.Request, error) {
	table, _ := d["table"].(map[string]any)
	words := d.text("topology")
	fn := first(fmt.Sprint(table["collective"]))
	if fn, _, _ = strings.Cut(fn, ","); fn == "nccl-tests" {
		fn = "all_reduce"
	}
	if _, err := coll.ParseFunc(fn); err != nil {
		return diagnose.Request{}, fmt.Errorf("the table is not of a collective")
	}
	rows := bandwidths(table)
	gpu, nodes := "", 1.0
	for _, g := range strings.Fields("GB300 GB200 GB10 H200 H100 H20 A100 V100 MI300X MI350X") {
		if strings.Contains(words, g) && gpu == "" {
			gpu = g
		}
	}
	if strings.Contains(words, "DGX nodes") {
		gpu = "A100" // of NCCL 2.22 and before; the report does not say
	}
	nodes, _ = table["nodes"].(float64)
	per, _ := table["gpus_per_node"].(float64)
	ranks, _ := table["ranks"].(float64)
	if nodes == 0 {
		nodes = 2
	}
	switch {
	case per > 0:
		nodes = ranks / per
	case ranks > 0:
		per = ranks / nodes
	case strings.Contains(words, "4 x A100"):
		per = 4
	default:
		per = 8
	}
	if gpu == "" || strings.HasPrefix(gpu, "MI") || len(rows) == 0 {
		return diagnose.Request{}, fmt.Errorf("no table of a GPU of NVIDIA can be made of it")
	}
	data, err := json.Marshal(
		document{"name": d.text("name"), "collective": fn, "env": settingsOf(d), "rows": rows,
			"system": map[string]any{"gpu": gpu, "nodes": nodes, "gpus_per_node": per, "nic": words}},
	)
	return diagnose.Request{Files: []diagnose.File{{Name: "table.json", Data: data},
		{Name: "report.txt", Data: []byte(words + "\n")}}}, err
}

// settingsOf are the variables that a report names with a value.
func settingsOf(d document) map[string]string {
	out := map[string]string{}
	env, _ := d["settings"].(map[string]any)
	for k, v := range env {
		out[k], _, _ = strings.Cut(fmt.Sprint(v), " ")
	}
	return out
}

// bandwidths are the points of a table in words: those of points, those by size, or
// else the least bandwidth, which is the bad case, at 1 GiB.
func bandwidths(table map[string]any) (out []point) {
	least := point{Bytes: 1 << 30}
	take := func(v, f float64, alg bool) {
		if v *= f; v > 0 && (least.BusBW+least.AlgBW == 0 || v < least.BusBW+least.AlgBW) {
			if least.BusBW, least.AlgBW = v, 0; alg {
				least.BusBW, least.AlgBW = 0, v
			}
		}
	}
	for key, v := range table {
		f, alg := 1.0, strings.HasPrefix(key, "algbw")
		if strings.HasSuffix(key, "Gbps") {
			f = 0.125
		}
		switch v := v.(type) {
		case float64:
			if strings.Contains(key, "busbw") {
				take(v, f, alg)
			}
		case map[string]any:
			for name, v := range v {
				bw, _ := v.(float64)
				var n int64
				var unit string
				if k, _ := fmt.Sscanf(name, "%d %s", &n, &unit); k == 2 && strings.HasSuffix(unit, "iB") {
					shift := map[string]int{"MiB": 20, "GiB": 30}[unit]
					out = append(out, point{Bytes: n << shift, BusBW: bw})
				} else {
					take(bw, f, alg)
				}
			}
		case []any:
			out = append(out, document{"rows": v}.rows()...)
		}
	}
	if len(out) == 0 && least.BusBW+least.AlgBW > 0 {
		out = append(out, least)
	}
	slices.SortFunc(out, func(a, b point) int { return int(a.Bytes>>10 - b.Bytes>>10) })
	return out
}

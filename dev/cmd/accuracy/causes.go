package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/study/diagnose"
)

// called are the kinds of suspects by what the collection of causes calls them, and what a report must ask
// for, in these words, where it lacks what shows the cause.
var called = [...]struct{ cause, kinds, asks string }{
	{"no_gdr", "no-gpudirect", "no-gpudirect"}, {"wrong_hca", "wrong-hca nic-down", "wrong-hca"},
	{"wrong_nic", "numa wrong-hca", "numa"}, {"slow_node", "slow-node", "slow-node"}, {"acs", "acs", "acs"},
	{"channels", "channels", "channels"}, {"mtu", "mtu", "mtu"}, {"pxn", "pxn release", "release"},
	{"tuning", "setting channels release", "release"}, {"routing", "routing congestion hash-collision",
		"network"},
	{"host_memory", "host-memory", "host-memory"},
}

// causes are tables with the cause that was found.
func causes(shared fs.FS) (out []trial, err error) {
	var all []document
	if err := read(shared, "reference/causes.json", &all); err != nil {
		return nil, err
	}
	for _, d := range all {
		i := slices.IndexFunc(called[:], func(c struct{ cause, kinds, asks string }) bool {
			return c.cause == d.text("kind")
		})
		if i < 0 {
			continue
		}
		out = append(out, trial{name: d.text("name"), source: d.text("source"), group: d.text("kind"),
			kinds: strings.Fields(called[i].kinds), asks: called[i].asks,
			make: func() (diagnose.Request, error) { return causeOf(d) }})
	}
	return out, nil
}

// causeOf is what a reporter pastes: a table of each labelled bandwidth of a collective, with its settings,
// and the words about the machine. The name of the case, its cause and what was better after the repair are
// not given; other tools' figures are words.
func causeOf(d document) (diagnose.Request, error) {
	table, _ := d["table"].(map[string]any)
	words := d.text("topology")
	fn := first(fmt.Sprint(table["collective"]))
	if fn, _, _ = strings.Cut(fn, ","); fn == "nccl-tests" {
		fn = "all_reduce"
	}
	req := diagnose.Request{Files: []diagnose.File{{Name: "report.txt", Data: []byte(words + "\n")}}}
	if _, err := coll.ParseFunc(fn); err != nil {
		for _, k := range slices.Sorted(maps.Keys(table)) {
			req.Files[0].Data = fmt.Appendf(req.Files[0].Data, "%s: %v\n", k, table[k])
		}
		return req, nil
	}
	gpu, per, nodes := sizeOf(d, table)
	for i, b := range bandwidths(table) {
		if b.pair != "" {
			data, err := paired(fn, int(per), &b)
			if err != nil {
				return req, err
			}
			req.Files = append(req.Files, diagnose.File{Name: fmt.Sprintf("%d.txt", i), Data: data})
			continue
		}
		sys := map[string]any{"gpu": gpu, "nodes": nodes, "gpus_per_node": per, "nic": b.label + "; " + words}
		if m := regexp.MustCompile(`\b(\d+)(?: x)? NICs?\b`).FindStringSubmatch(b.label); m != nil {
			sys["nics_per_node"] = m[1]
		}
		if m := regexp.MustCompile(`^(\d+)(?: GPUs)? x `).FindStringSubmatch(b.label); m != nil {
			sys["gpus_used"], _ = strconv.Atoi(m[1])
		}
		doc := document{"name": "table", "collective": fn, "env": settingsOf(d), "rows": b.rows,
			"system": sys}
		if m := regexp.MustCompile(`NCCL (\d+\.\d+)`).FindStringSubmatch(b.label); m != nil {
			doc["nccl_version"] = m[1] + ".1"
		}
		data, err := json.Marshal(doc)
		if err != nil {
			return req, err
		}
		req.Files = append(req.Files, diagnose.File{Name: fmt.Sprintf("%d.json", i), Data: data})
	}
	return req, nil
}

// perNode finds the number of GPUs of a node in words: 4 x A100, 2 of 8 H20, 4 GPUs.
var perNode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(\d+)(?: x| of \d+)? (?:GPUs|(?:GB|[ABHLV]|MI)\d+\w*)\b`)
})

// sizeOf is the GPU that a report names, and its GPUs of a node and nodes.
func sizeOf(d document, table map[string]any) (gpu string, per, nodes float64) {
	words := d.text("topology")
	for _, g := range strings.Fields("GB300 GB200 GB10 H200 H100 H20 A100 V100 MI300X MI350X MI355X B200 " +
		"Spark") {
		if strings.Contains(words, g) && gpu == "" {
			gpu = strings.Replace(g, "Spark", "GB10", 1)
		}
	}
	nodes, _ = table["nodes"].(float64)
	per, _ = table["gpus_per_node"].(float64)
	ranks, _ := table["ranks"].(float64)
	if nodes = max(nodes, 0); nodes == 0 {
		nodes = 2
	}
	switch m := perNode().FindStringSubmatch(words); {
	case per > 0 && ranks > 0:
		nodes = ranks / per
	case ranks > 0:
		per = ranks / nodes
	case gpu == "GB10":
		per = 1
	case m != nil:
		per, _ = strconv.ParseFloat(m[1], 64)
	default:
		per = 8
	}
	return gpu, per, nodes
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

// labelled are points of one table of a report, with its words.
type labelled struct {
	label, pair string // pair: of two hosts
	rows        []judgePoint
}

// bandwidths are the tables of a report: its points, those by size, and one of 1 GiB for each labelled
// figure, peaks of one after its averages.
func bandwidths(table map[string]any) (out []labelled) {
	var sizes []judgePoint
	one := func(label string, bw, f float64, alg bool) {
		p := judgePoint{Bytes: 1 << 30, BusBW: bw * f}
		if alg {
			p.BusBW, p.AlgBW = 0, p.BusBW
		}
		if !slices.ContainsFunc(out, func(l labelled) bool { return l.label == label }) && bw > 0 {
			out = append(out, labelled{label: label, rows: []judgePoint{p}})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		f, alg := 1.0, strings.HasPrefix(key, "algbw")
		if strings.HasSuffix(key, "Gbps") {
			f = 0.125
		}
		switch v := table[key].(type) {
		case float64:
			if strings.Contains(key, "busbw") {
				one("", v, f, alg)
			}
			if key == "before" {
				one("before", v, 1, false)
			}
		case map[string]any:
			if !strings.Contains(key, "bw") {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				bw, _ := v[name].(float64)
				var n int64
				var unit string
				if k, _ := fmt.Sscanf(name, "%d %s", &n, &unit); k == 2 && strings.HasSuffix(unit, "iB") {
					shift := map[string]int{"MiB": 20, "GiB": 30}[unit]
					sizes = append(sizes, judgePoint{Bytes: n << shift, BusBW: bw})
				} else if one(name, bw, f, alg); strings.Contains(key, "pair") {
					out[len(out)-1].pair = name
				}
			}
		case []any:
			sizes = append(sizes, document{"rows": v}.rows()...)
		}
	}
	if len(sizes) > 0 {
		slices.SortFunc(sizes, func(a, b judgePoint) int { return cmp.Compare(a.Bytes, b.Bytes) })
		out = append([]labelled{{rows: sizes}}, out...)
	}
	return out
}

// paired is a table of nccl-tests on two hosts that a pair names, as its program prints it.
func paired(fn string, per int, l *labelled) ([]byte, error) {
	f, err := coll.ParseFunc(fn)
	if err != nil {
		return nil, err
	}
	pair, _, _ := strings.Cut(l.pair, " ")
	a, b, _ := strings.Cut(pair, "-")
	out := fmt.Appendf(nil,
		"# Collective test starting: %s_perf\n# nThread 1 nGpus 1 minBytes 1073741824 maxBytes "+
			"1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 0 graph: 0\n#\n"+
			"# Using devices\n", fn)
	for i := range 2 * per {
		out = fmt.Appendf(out, "#  Rank %2d Group  0 Pid %6d on %s device %d [0x00] GPU\n", i, 1000+i,
			[]string{a, b}[i/per], i%per)
	}
	out = append(out,
		"#\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n"+
			"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"...)
	for _, r := range l.rows {
		us := float64(r.Bytes) / r.BusBW * f.BusFactor(2*per) * 1e-3
		out = fmt.Appendf(out, "%12d %13d     float     sum      -1 %9.1f %7.2f %7.2f      0\n", r.Bytes,
			r.Bytes/4,
			us, math.Round(100*float64(r.Bytes)/us*1e-3)/100, r.BusBW)
	}
	return out, nil
}

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/study/diagnose"
)

// document is a published table, as its JSON has it.
type document map[string]any

// judgePoint is a size of a table. Others of its members are left out: times decide.
type judgePoint struct {
	Bytes int64   `json:"bytes"`
	Us    float64 `json:"time_us,omitempty"`
	AlgBW float64 `json:"algbw,omitempty"`
	BusBW float64 `json:"busbw,omitempty"`
}

func (d document) text(key string) string {
	s, _ := d[key].(string)
	return s
}

func (d document) rows() (out []judgePoint) {
	data, err := json.Marshal(d["rows"])
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

func (d document) system(key string) any {
	s, _ := d["system"].(map[string]any)
	return s[key]
}

func (d document) nodes() int {
	n, _ := d.system("nodes").(float64)
	return max(1, int(n))
}

// nics are the NICs of a node; 0 where the table does not say.
func (d document) nics() (n int) {
	fmt.Sscan(fmt.Sprint(d.system("nics_per_node")), &n) //nolint:errcheck // words are no number
	return n
}

// joined reports whether NVLink carries all between the nodes, as in a rack: a part of their NICs means
// nothing.
func (d document) joined() bool {
	intra, _ := d.system("intra").(string)
	per, _ := d.system("gpus_per_node").(float64)
	env, _ := d["env"].(map[string]any)
	return strings.Contains(intra, "NVL72") && d.nodes()*int(per) <= 72 && env["NCCL_MNNVL_ENABLE"] != "0"
}

// with is the document with times changed, of the only rows that it keeps.
func (d document) with(change func(r judgePoint) judgePoint) document {
	out := maps.Clone(d)
	delete(out, "rows_in_place")
	var rows []judgePoint
	for _, r := range d.rows() {
		rows = append(rows, change(r))
	}
	out["rows"] = rows
	return out
}

// slowed is a point that takes f times as long.
func (r judgePoint) slowed(f float64) judgePoint {
	return judgePoint{r.Bytes, r.Us * f, r.AlgBW / f, r.BusBW / f}
}

// trialsOf are the cases of a kind.
func trialsOf(kind string, shared fs.FS, from, draws int) ([]trial, error) {
	if kind == "faults" {
		return faults(from, draws), nil
	}
	if kind == "causes" {
		return causes(shared)
	}
	if kind != "tables" && kind != "cuts" {
		return nil, fmt.Errorf("no cases of the kind %q", kind)
	}
	docs, err := documents(shared)
	if err != nil {
		return nil, err
	}
	var out []trial
	for _, d := range docs {
		slower := map[string]func(judgePoint) judgePoint{}
		for _, part := range []float64{2, 4, 8} {
			cut := d.cut(part)
			if cut == nil {
				break
			}
			called := fmt.Sprintf("/%g", part)
			slower[called] = cut
			if kind == "cuts" {
				t := d.trial(called, diagnose.Slower, d.with(cut))
				if n := d.nics(); !d.joined() && (n == 0 || n%int(part) == 0) {
					t.kinds = []string{"wrong-hca", "nic-down"} // a part of the NICs are whole ones
				}
				out = append(out, t)
			}
		}
		if kind == "tables" {
			slower["*1.7"] = func(r judgePoint) judgePoint {
				if r.Bytes < 1<<20 {
					return r
				}
				return r.slowed(1.7)
			}
			t := d.trial("", diagnose.AsExpected, d)
			t.slower = slower
			out = append(out, t)
		}
	}
	return out, nil
}

// cut bounds a bandwidth by a part of a table's plateau; nil of a table that has none, or of one node.
func (d document) cut(part float64) func(judgePoint) judgePoint {
	most, n := 0.0, 0
	for _, r := range d.rows() {
		if r.AlgBW > 0 {
			most = max(most, r.AlgBW)
			n++
		}
	}
	if d.nodes() < 2 || n < 3 {
		return nil
	}
	return func(r judgePoint) judgePoint { return r.slowed(max(1, r.AlgBW/(most/part))) }
}

func (d document) trial(suffix string, v diagnose.Verdict, of document) trial {
	gpu, _ := d.system("gpu").(string)
	return trial{
		name:    d.text("name") + suffix,
		table:   d.text("name"),
		source:  d.text("source"),
		group:   first(gpu) + suffix,
		verdict: v,
		make: func() (diagnose.Request, error) {
			data, err := json.Marshal(of)
			return diagnose.Request{Files: []diagnose.File{{Name: "table.json", Data: data}}}, err
		},
	}
}

// first is the first word of a GPU's name.
func first(gpu string) string {
	word, _, _ := strings.Cut(gpu, " ")
	return word
}

// documents are the published tables of NVIDIA's GPUs that no cause is known of, and our own.
func documents(shared fs.FS) (out []document, err error) {
	var known []document
	if err := read(shared, "reference/causes.json", &known); err != nil {
		return nil, err
	}
	var all []document
	if err := read(shared, "reference/tables.json", &all); err != nil {
		return nil, err
	}
	names, err := fs.Glob(shared, "measured/public/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var d document
		if err := read(shared, name, &d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	own, err := ours(shared)
	if err != nil {
		return nil, err
	}
	for _, d := range append(all, own...) {
		gpu, _ := d.system("gpu").(string)
		if strings.HasPrefix(gpu, "MI") || strings.Contains(d.text("nccl_version"), "RCCL") ||
			slices.ContainsFunc(known, func(k document) bool { return k.text("name") == d.text("name") }) {
			continue
		}
		out = append(out, d)
	}
	return out, nil
}

func read(dir fs.FS, name string, to any) error {
	data, err := fs.ReadFile(dir, name)
	if err == nil {
		if err = json.Unmarshal(data, to); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}

// ours are the measured tables of nccl-tests' form in shared/measured/h200x4, but those whose
// algorithm was forced, in the form of the published ones.
func ours(shared fs.FS) (out []document, err error) {
	names, err := fs.Glob(shared, "measured/h200x4/nccl-tests/*.txt")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.Contains(name, "/forced_") {
			continue
		}
		runs, _, err := calibrate.ReadFile(shared, name)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			out = append(out, documentOf(r))
		}
	}
	return out, nil
}

// documentOf writes a run of one operation as a published table.
func documentOf(r *calibrate.Run) document {
	var rows []judgePoint
	var fn coll.Func
	for i := range r.Samples {
		if s := &r.Samples[i]; !s.Op.InPlace {
			fn = s.Op.Func
			rows = append(rows, judgePoint{Bytes: s.Bytes, Us: s.Us, AlgBW: float64(s.Bytes) / s.Us * 1e-3})
		}
	}
	env := map[string]string{"NCCL_NVLS_ENABLE": "0"} // multicast was off on that machine
	if _, n, ok := strings.Cut(r.File, "/chan_"); ok {
		env["NCCL_MAX_NCHANNELS"], n, _ = strings.Cut(n, "_")
		if p, _, ok := strings.Cut(n, "_"); ok {
			env["NCCL_PROTO"] = p
		}
	}
	return document{"name": r.File, "source": "simccl", "nccl_version": "2.28.9", "env": env,
		"system":     map[string]any{"gpu": r.GPU, "gpus_per_node": r.Ranks, "nodes": 1.0},
		"command":    fmt.Sprintf("%s_perf -g %d", fn.TestName(), r.PerThread),
		"collective": fn.TestName(), "rows": rows}
}

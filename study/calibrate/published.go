package calibrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// published is a table of measurements by others, as JSON: the operation, the system, and a time or a
// bandwidth for each size. A file contains one table or a list.
type published struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Date   string `json:"date"`
	System struct {
		GPU   string `json:"gpu"`
		Of    int    `json:"gpus_per_node"`
		Used  int    `json:"gpus_used"`
		Nodes int    `json:"nodes"`
		NIC   string `json:"nic"`
		NICs  any    `json:"nics_per_node"` // a number, or words that begin with one
		Intra string `json:"intra"`
		Cloud string `json:"cloud"`
	} `json:"system"`
	NCCL       string            `json:"nccl_version"`
	Command    string            `json:"command"`
	Env        map[string]string `json:"env"`
	Collective string            `json:"collective"`
	Type       string            `json:"datatype"`
	InPlace    bool              `json:"in_place"`
	Rows       []publishedRow    `json:"rows"`
	RowsIn     []publishedRow    `json:"rows_in_place"`
}

// publishedRow is one size; of time and bandwidths one is enough.
type publishedRow struct {
	Bytes  int64   `json:"bytes"`
	TimeUs float64 `json:"time_us"`
	AlgBW  float64 `json:"algbw"`
	BusBW  float64 `json:"busbw"`
}

// readPublished makes one run of each table of a JSON file. ok is false if the file is of another kind. left
// names tables that cannot be used.
func readPublished(name string, text []byte, s settings) (runs []*Run, left []string, ok bool, err error) {
	var list []published
	one := bytes.TrimSpace(text)
	if len(one) > 0 && one[0] == '{' {
		one = slices.Concat([]byte("["), one, []byte("]"))
	}
	if json.Unmarshal(one, &list) != nil || !slices.ContainsFunc(list, func(p published) bool {
		return p.Collective != "" && len(p.Rows) > 0
	}) {
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) && json.Valid(text) {
			return nil, []string{name + ": no table in it"}, true, nil // a list of other things
		}
		return nil, nil, false, nil
	}
	for i := range list {
		file := name
		if len(list) > 1 {
			file = fmt.Sprintf("%s:%s", name, termtext.Quote(list[i].Name, 80))
		}
		r, why, err := list[i].run(file, s)
		if err != nil {
			return nil, nil, true, err
		}
		if why != "" {
			left = append(left, file+": "+why)
			continue
		}
		runs = append(runs, r)
	}
	return runs, left, true, nil
}

// launchFlag finds the flags by which nccl-tests launches: -t threads, -g GPUs of each, -G graphs.
var launchFlag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s-([tgG])\s*(\d+)\b`) })

// run makes a run of a table; why is the reason if it cannot be used. Defaults for what a table does not
// state: out of place, launched without CUDA graphs, one process per GPU, elements of type float.
func (p *published) run(file string, s settings) (r *Run, why string, err error) {
	fn, err := coll.ParseFunc(p.Collective)
	if err != nil {
		return nil, "", &FileError{File: file, Problem: err.Error()}
	}
	per := cmp.Or(p.System.Used, p.System.Of)
	r = &Run{File: file, Name: p.Name, Source: p.Source, GPU: p.System.GPU, Date: dateIn().FindString(p.Date),
		Nodes: max(1, p.System.Nodes), PerNode: p.System.Of,
		System: strings.Join([]string{p.System.NIC, p.System.Intra, p.System.Cloud}, "; ")}
	r.NICs, _ = strconv.Atoi(numberIn().FindString(fmt.Sprint(p.System.NICs)))
	if r.Ranks = per * r.Nodes; r.Ranks < 1 || r.Ranks > maxPublished || len(p.Rows) > maxPublished {
		return nil, "",
			&FileError{File: file, Problem: "system: write gpus_per_node, or gpus_used, and nodes"}
	}
	if strings.Contains(p.NCCL, "RCCL") {
		return nil, "of RCCL, not NCCL", nil
	}
	if v := versionIn().FindString(p.NCCL); v != "" {
		if strings.Count(v, ".") == 1 {
			v += ".0" // no patch is named
		}
		if at, err := rules.ParseRelease(v); err == nil {
			r.NCCL = at.Code()
		}
	}
	r.launchedAs(p.Command)
	var own []string
	for _, k := range slices.Sorted(maps.Keys(p.Env)) {
		if strings.HasPrefix(k, "NCCL_") && !ignored(k) {
			own = append(own, k+"="+p.Env[k])
		}
	}
	t, err := provenanceOf(file, own, s)
	if err != nil {
		return nil, "", &FileError{File: file, Problem: err.Error()}
	}
	r.Env, r.From = t.env, t.from
	if p.Type != "" {
		if t.typ, err = coll.ParseDataType(p.Type); err != nil {
			return nil, "", &FileError{File: file, Problem: err.Error()}
		}
	}
	for i, rows := range [...][]publishedRow{p.Rows, p.RowsIn} {
		in := p.InPlace || i == 1
		if in && (fn == coll.AllToAll || fn == coll.SendRecv) {
			continue
		}
		r.take(rows, comm.Op{Func: fn, Type: t.typ, InPlace: in})
	}
	if len(r.Samples) == 0 {
		return nil, "no times in it", nil
	}
	return r, "", nil
}

// maxPublished is the largest accepted number of ranks and of rows of a table.
const maxPublished = 1 << 20

var numberIn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,4}\b`) })

var versionIn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+\.\d+(?:\.\d+)?`) })

// launchedAs sets the processes and launch mode from a command line of nccl-tests.
func (r *Run) launchedAs(command string) {
	r.Launch, r.PerThread, r.Threads = sim.Eager, 1, 1
	for _, m := range launchFlag().FindAllStringSubmatch(command, -1) {
		n, err := strconv.Atoi(m[2])
		switch {
		case err != nil || n < 1 || n > r.Ranks/r.Nodes:
		case m[1] == "t":
			r.Threads = n
		case m[1] == "g":
			r.PerThread = n
		}
		if m[1] == "G" && n > 0 {
			r.Launch = sim.Graph
		}
	}
}

// take adds the samples of rows that have a time.
func (r *Run) take(rows []publishedRow, op comm.Op) {
	for _, row := range rows {
		if row.Bytes < 1 {
			continue
		}
		op.Count = coll.ExactSizes(op.Func, units.Bytes(row.Bytes), op.Type, r.Ranks).Count
		us := row.TimeUs
		if us == 0 && row.AlgBW > 0 {
			us = float64(row.Bytes) / row.AlgBW * 1e-3
		} else if us == 0 && row.BusBW > 0 {
			us = float64(row.Bytes) / row.BusBW * op.Func.BusFactor(r.Ranks) * 1e-3
		}
		if us > 0 && op.Count > 0 {
			r.Samples = append(r.Samples, Sample{Op: op, Bytes: row.Bytes, Us: us})
		}
	}
}

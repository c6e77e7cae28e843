package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/sim"
)

// readTables reads the output of nccl-tests or of simccl bench: one run per table. left names what was
// omitted, with the reason.
func readTables(name string, text []byte, s settings, simulated bool) (runs []*Run, left []string,
	err error) {
	tables, err := nccltests.Parse(text, "")
	if err != nil {
		var bad *nccltests.ParseError
		if errors.As(err, &bad) {
			return nil, nil, &FileError{name, bad.Line, bad.Problem}
		}
		return nil, nil, &FileError{File: name, Problem: err.Error()}
	}
	for i, p := range tables {
		file := name
		if i > 0 {
			file = fmt.Sprintf("%s:%d", name, p.Line)
		}
		run, why, err := readTable(file, p, s, simulated)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			left = append(left, file+": "+why)
			continue
		}
		if p.Cut > 0 {
			left = append(left, file+": "+p.Left())
		}
		runs = append(runs, run)
	}
	return runs, left, nil
}

// readTable makes a run of a table; why is the reason if it is omitted.
func readTable(name string, p *nccltests.Parsed, s settings, simulated bool) (run *Run, why string,
	err error) {
	for _, l := range p.Preface {
		if why := foreign(l); why != "" && (why != isSimulated || !simulated) {
			return nil, why, nil
		}
	}
	unnamed := p.Config.Program == ""
	if why := operation(p, name); why != "" {
		return nil, why, nil
	}
	if n := p.Wrong(); n > 0 {
		return nil, fmt.Sprintf("wrong values in %d of %d rows", n, len(p.Rows)), nil
	}
	if n := p.Summary.OutOfBounds; n > 0 {
		return nil, fmt.Sprintf("wrong values, %d by its last lines", n), nil
	}
	r := &Run{File: name, Unnamed: unnamed, Date: dateIn().FindString(strings.Join(p.Preface, " "))}
	if m := simulatedOn().FindStringSubmatch(strings.Join(p.Preface, "\n")); m != nil {
		r.Topo, r.Digest = m[1], m[2]
	}
	head := append(p.Preface, p.MoreComments...)
	if err := r.fill(settingsInText(head), s, p.Config, p.Devices, p.Rows); err != nil {
		return nil, "", err
	}
	if len(r.Samples) == 0 {
		return nil, "no times in it", nil
	}
	return r, "", nil
}

// operation sets the operation of a table that no line names. Its columns say whether it reduces and has a
// root, and bus over algorithm bandwidth is 2(n-1)/n of an all_reduce, (n-1)/n of an all_gather: of several
// that remain (all_gather and alltoall, for example) the file's name decides. why is what to add where it
// does not.
func operation(p *nccltests.Parsed, name string) (why string) {
	if p.Config.Program != "" {
		return ""
	}
	var like, named []string
	for f := range coll.NumFuncs {
		if !looks(p, f) {
			continue
		}
		like = append(like, f.TestName())
		if strings.Contains(nccltests.Bare(name), nccltests.Bare(f.TestName())) {
			named = append(named, f.TestName())
		}
	}
	switch {
	case len(like) == 1:
		named = like
	case len(named) == 1:
	case len(like) > 1:
		return fmt.Sprintf("no line says which operation was measured, and it looks like %s; add a line as "+
			"# Collective test starting: %s_perf", strings.Join(like, " or "), like[0])
	default:
		return "neither the table nor a line before it says which operation was measured; add a line as " +
			"# Collective test starting: all_reduce_perf"
	}
	p.Config.Program = named[0] + "_perf"
	return ""
}

// looks reports whether the rows are as an operation's: all of them, and at least one with bandwidths.
func looks(p *nccltests.Parsed, f coll.Func) bool {
	some := false
	for i := range p.Rows {
		r := &p.Rows[i]
		if (r.Root >= 0) != f.Rooted() || (r.RedOp != "" && r.RedOp != "none") != f.PrintsRedOp() {
			return false
		}
		if m := r.Out; p.Ranks > 1 && !m.Missing && m.AlgBW >= 1 {
			if math.Abs(m.BusBW/m.AlgBW/f.BusFactor(p.Ranks)-1) > rounded {
				return false
			}
			some = true
		}
	}
	return some
}

// rounded is what bandwidths with two decimals of at least 1 GB/s may be off by.
const rounded = 0.01

var dateIn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b20\d\d-\d\d-\d\d`) })

var simulatedOn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` simulated: topo=(\S+) sha256=([0-9a-f]{12})\b`)
})

// isSimulated is why a table of simccl's own is none of measured times.
const isSimulated = "simulated, not measured"

// foreign returns the reason why a table of simccl bench is no measurement of NCCL on GPUs; "" if it is one.
func foreign(preface string) string {
	switch {
	case strings.Contains(preface, "--backend cuda"):
		return "our own algorithms, not NCCL"
	case strings.Contains(preface, "measured in host memory"):
		return "host memory, not GPUs"
	case strings.Contains(preface, " simulated: "):
		return isSimulated
	}
	return ""
}

// foreignJSON is foreign for JSON, where our own key and the devices decide.
func foreignJSON(doc *nccltests.Report) string {
	for _, d := range doc.Devices {
		if d.Name == "host memory" {
			return "host memory, not GPUs"
		}
	}
	for _, text := range doc.Own {
		var own struct {
			Shape string   `json:"shape"`
			SimUs *float64 `json:"sim_us"`
		}
		switch err := json.Unmarshal([]byte(text), &own); {
		case err != nil: // none, or of another program
		case own.SimUs != nil:
			return isSimulated
		case own.Shape != "" && own.Shape != "nccl":
			return "our own algorithms, not NCCL"
		}
	}
	return ""
}

func readJSON(name string, text []byte, s settings, simulated bool) (*Run, string, error) {
	doc, err := nccltests.ParseJSON(text, "")
	if err != nil {
		var bad *nccltests.ParseError
		if errors.As(err, &bad) {
			return nil, "", &FileError{name, bad.Line, bad.Problem}
		}
		return nil, "", &FileError{File: name, Problem: err.Error()}
	}
	if doc == nil {
		return nil, "no JSON of nccl-tests", nil
	}
	var own []string
	for _, kv := range doc.Env {
		if k, _, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "NCCL_") && !ignored(k) {
			own = append(own, kv)
		}
	}
	own = append(own, settingsInText(doc.Args)...)
	for _, why := range []string{foreign(strings.Join(doc.Args, " ")), foreignJSON(doc), wrongJSON(doc)} {
		if why != "" && (why != isSimulated || !simulated) {
			return nil, why, nil
		}
	}
	r := &Run{File: name, Date: dateIn().FindString(doc.Start)}
	return r, "", r.fill(own, s, doc.Config, doc.Devices, doc.Rows)
}

// wrongJSON reports why times of results that were wrong are worth nothing.
func wrongJSON(doc *nccltests.Report) string {
	p := nccltests.Parsed{Rows: doc.Rows}
	if n := p.Wrong(); n > 0 {
		return fmt.Sprintf("wrong values in %d of %d rows", n, len(p.Rows))
	}
	return ""
}

// fill sets a run's settings, operation and samples from a table's head and rows.
func (r *Run) fill(own []string, s settings, c nccltests.Config, devices []nccltests.Device,
	rows []nccltests.Row) error {
	t, err := provenanceOf(r.File, own, s)
	if err != nil {
		return &FileError{File: r.File, Problem: err.Error()}
	}
	r.Env, r.From = t.env, t.from
	fn, err := coll.ParseFunc(c.Program)
	if err != nil {
		return &FileError{File: r.File, Problem: err.Error()}
	}
	hosts, process := map[string]bool{}, false
	for _, d := range devices {
		hosts[d.Host] = true
		r.GPU, process = d.Name, process || d.PID > 0
	}
	r.NCCL = c.NCCLLibrary
	r.Ranks, r.Nodes, r.PerThread, r.Threads = len(devices), len(hosts), max(c.GPUs, 1), max(c.Threads, 1)
	if !process && c.Threads <= 1 { // of a simulation, which has a process a GPU unless it says threads
		r.PerThread = 1
	}
	r.Launch = sim.Eager
	if c.Graph > 0 {
		r.Launch = sim.Graph
	}
	for _, row := range rows {
		typ, err := coll.ParseDataType(row.Type)
		if err != nil {
			return &FileError{File: r.File, Problem: err.Error()}
		}
		op := comm.Op{Func: fn, Count: row.Count, Type: typ, Root: int32(max(row.Root, 0))}
		if row.RedOp != "none" {
			if op.RedOp, err = coll.ParseRedOp(row.RedOp); err != nil {
				return &FileError{File: r.File, Problem: err.Error()}
			}
		}
		for i, m := range []nccltests.Measure{row.Out, row.In} {
			op.InPlace = i == 1
			meaningless := op.InPlace && (fn == coll.AllToAll || fn == coll.SendRecv)
			if m.TimeUs > 0 && row.Count > 0 && !meaningless {
				r.Samples = append(r.Samples, Sample{Op: op, Bytes: row.Size, Us: m.TimeUs})
			}
		}
	}
	return nil
}

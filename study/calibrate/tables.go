package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/sim"
)

// readTable reads what nccl-tests, or our bench, printed.
func readTable(name string, text []byte, s settings) (*Run, string, error) {
	p, err := nccltests.Parse(bytes.NewReader(onlyTable(text)))
	if err != nil {
		var bad *nccltests.ParseError
		if errors.As(err, &bad) {
			return nil, "", &FileError{name, bad.Line, bad.Problem}
		}
		return nil, "", &FileError{File: name, Problem: err.Error()}
	}
	head := append(p.Preface, p.MoreComments...)
	for _, l := range p.Preface {
		if why := foreign(l); why != "" {
			return nil, why, nil
		}
	}
	if why := wrongValues(p.Rows); why != "" {
		return nil, why, nil
	}
	r := &Run{File: name, Date: dateIn().FindString(strings.Join(p.Preface, " "))}
	return r, "", r.fill(settingsInText(head), s, p.Config, p.Devices, p.Rows)
}

// onlyTable blanks what launchers and NCCL_DEBUG print between a table's lines:
// all that neither is a comment nor begins with a number.
func onlyTable(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) > 0 && (f[0][0] == '#' || f[0][0] >= '0' && f[0][0] <= '9') {
			out.Write(line)
		} else {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

var dateIn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b20\d\d-\d\d-\d\d`) })

// foreign reports why a table of ours is not of NCCL on GPUs.
func foreign(preface string) string {
	switch {
	case strings.Contains(preface, "--backend cuda"):
		return "our own algorithms, not NCCL"
	case strings.Contains(preface, "measured in host memory"):
		return "host memory, not GPUs"
	case strings.Contains(preface, " simulated: "):
		return "simulated, not measured"
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
			return "simulated, not measured"
		case own.Shape != "" && own.Shape != "nccl":
			return "our own algorithms, not NCCL"
		}
	}
	return ""
}

// wrongValues reports why times of results that were wrong are worth nothing.
func wrongValues(rows []nccltests.Row) string {
	n := 0
	for _, r := range rows {
		if r.Out.Checked && r.Out.Wrong != 0 || r.In.Checked && r.In.Wrong != 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("wrong values in %d of %d rows", n, len(rows))
}

func readJSON(name string, text []byte, s settings) (*Run, string, error) {
	doc, err := nccltests.ParseJSON(text)
	if err != nil {
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
	for _, why := range []string{foreign(strings.Join(doc.Args, " ")), foreignJSON(doc), wrongValues(doc.Rows)} {
		if why != "" {
			return nil, why, nil
		}
	}
	r := &Run{File: name, Date: dateIn().FindString(doc.Start)}
	return r, "", r.fill(own, s, doc.Config, doc.Devices, doc.Rows)
}

// fill takes what a table's head and rows say.
func (r *Run) fill(own []string, s settings, c nccltests.Config, devices []nccltests.Device, rows []nccltests.Row) error {
	t, err := provenanceOf(r.File, own, s)
	if err != nil {
		return &FileError{File: r.File, Problem: err.Error()}
	}
	r.Env, r.From = t.env, t.from
	fn, err := coll.ParseFunc(c.Program)
	if err != nil {
		return &FileError{File: r.File, Problem: err.Error()}
	}
	hosts := map[string]bool{}
	for _, d := range devices {
		hosts[d.Host] = true
		r.GPU = d.Name
	}
	r.NCCL = c.NCCLLibrary
	r.Ranks, r.Nodes, r.PerThread = len(devices), len(hosts), max(c.GPUs, 1)
	if r.Ranks == 0 {
		return &FileError{File: r.File, Problem: "the table does not list its GPUs (\"#  Rank 0 Group …\"): how many ranks were there?"}
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

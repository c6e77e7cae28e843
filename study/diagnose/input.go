package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/workload/flight"
	"github.com/simccl/simccl/workload/inputs"
)

// File is the content of a file with its name.
type File struct {
	Name string
	Data []byte
}

// row is a measured size of a table.
type row struct {
	bytes int64
	op    scenarioOp
	us    float64
}

// table is one measured operation on one communicator.
type table struct {
	run *calibrate.Run
	fn  coll.Func
	// A recorded table is of Kineto traces, those of traces, and of one type.
	recorded bool
	traces   []string
	typ      coll.DataType
	rows     []row
	// hosts are those of the file's head, where it has one table.
	hosts map[string]bool
}

func (t *table) name() string { return t.run.File + ", " + t.fn.TestName() }

// material is what the files hold.
type material struct {
	tables  []*table
	wrong   []string // tables whose results were wrong
	log     *ncclog.Log
	logs    []string
	machine string // a file that a machine is made of; empty: none
	fabric  string
	dumps   []*flight.Dump
	facts   []fact // what lines of the files say of suspects
	wires   []*wire
	notes   []string
}

// read sorts files by their content. An error names a file that is of no use.
func read(files []File) (*material, error) {
	m := new(material)
	var logs []ncclog.File
	for _, f := range files {
		v := inputs.Of(f.Data)
		used, err := m.tablesOf(f, &v)
		if err != nil {
			return nil, err
		}
		if v.Is(inputs.NCCLLog, inputs.NCCLCalls) {
			logs, used = append(logs, ncclog.File{Name: f.Name, Data: f.Data}), true
			m.logs = append(m.logs, f.Name)
		}
		switch {
		case v.Is(inputs.FlightJSON):
			err = m.dump(flight.ReadJSON(strings.NewReader(string(v.Text)), f.Name))
			used = true
		case v.Is(inputs.FlightPickle):
			err = m.dump(flight.ReadPickle(strings.NewReader(string(v.Text)), f.Name))
			used = true
		case v.Is(inputs.Kineto):
			err, used = m.recording(f, v.Text), true
		case v.Is(inputs.Topology, inputs.TopologyHosts, inputs.Lstopo, inputs.Matrix, inputs.MachineSpec,
			inputs.AMDTopology):
			m.machine, used = f.Name, true
		case v.Is(inputs.Fabric):
			m.fabric, used = f.Name, true
		}
		if err != nil {
			return nil, fail.Input(err)
		}
		if facts := factsOf(f.Name, v.Text); len(facts) > 0 {
			m.facts, used = append(m.facts, facts...), true
		}
		if w := wiresOf(f.Name, v.Text); w != nil {
			m.wires, used = append(m.wires, w), true
		}
		if !used && knownText(v.Text) {
			used = true
		}
		if !used {
			m.notes = append(m.notes, fmt.Sprintf("%s: %s; nothing in it bears on the times", f.Name,
				what(&v)))
		}
	}
	m.thin()
	if len(logs) > 0 {
		log, err := ncclog.Read(logs...)
		if err != nil { // warnings alone, or AMD's: their lines are looked at all the same
			m.notes = append(m.notes, err.Error())
			return m, nil
		}
		m.log = log
		if m.machine == "" && log.Printed() {
			m.machine = logs[0].Name
		}
	}
	return m, nil
}

func (m *material) dump(d *flight.Dump, err error) error {
	if err == nil {
		m.dumps = append(m.dumps, d)
	}
	return err
}

func what(v *inputs.Verdict) string {
	if k := v.Kind(); k != inputs.Unknown {
		return k.What()
	}
	return "of no kind that simccl knows"
}

// tablesOf takes the tables out of a content; used is false where it has none.
func (m *material) tablesOf(f File, v *inputs.Verdict) (used bool, err error) {
	known := v.Is(inputs.TestTable, inputs.TestJSON, inputs.RCCLTable)
	unknown := v.Kind() == inputs.Unknown
	if !known && !unknown {
		return false, nil
	}
	runs, left, err := calibrate.Parse(f.Name, v.Text)
	if err != nil {
		if unknown {
			return false, nil
		}
		return false, fail.Input(err)
	}
	for _, r := range runs {
		tables := split(r)
		if r.Unnamed && len(tables) > 0 {
			m.notes = append(m.notes, fmt.Sprintf("%s: no line says which operation was measured; "+
				"its columns are those of %s", r.File, tables[0].fn.TestName()))
		}
		if len(runs) == 1 {
			for _, t := range tables {
				t.hosts = hostsOf(v.Text)
			}
		}
		m.tables = append(m.tables, tables...)
	}
	for _, l := range left {
		switch {
		case strings.Contains(l, "wrong values"):
			m.wrong = append(m.wrong, l)
		case known || len(runs) > 0:
			m.notes = append(m.notes, l)
		}
	}
	return known || len(runs) > 0, nil
}

// split makes a table of each operation, type and reduction of a run: its times out of place, or
// where there are none in place.
func split(r *calibrate.Run) (out []*table) {
	type key struct {
		fn    coll.Func
		typ   coll.DataType
		redop coll.RedOp
		root  int32
	}
	by := map[key]*table{}
	for _, inPlace := range []bool{false, true} {
		for i := range r.Samples {
			s := &r.Samples[i]
			if s.Op.InPlace != inPlace {
				continue
			}
			k := key{s.Op.Func, s.Op.Type, s.Op.RedOp, s.Op.Root}
			t := by[k]
			if t == nil {
				t = &table{run: r, fn: s.Op.Func}
				by[k], out = t, append(out, t)
			}
			if !slices.ContainsFunc(t.rows, func(o row) bool { return o.bytes == s.Bytes }) {
				t.rows = append(t.rows, row{s.Bytes, operation(&s.Op), s.Us})
			}
		}
	}
	for _, t := range out {
		slices.SortFunc(t.rows, func(a, b row) int { return int(min(max(a.bytes-b.bytes, -1), 1)) })
	}
	return out
}

package sweep

import (
	"encoding/json"
	"strconv"

	"github.com/simccl/simccl/study/sweep/table"
)

// Table converts the merged results to typed columns, the same as WriteCSV's. A setting is a number if it is
// one at every point. About has the manifest.
func (m *Merged) Table(provenance bool) (*table.Table, error) {
	labels, header := m.Header(provenance)
	kinds, err := m.kinds(labels)
	if err != nil {
		return nil, err
	}
	t := &table.Table{}
	for i, name := range header {
		c := &table.Column{Name: name}
		switch at := i - 1; {
		case at < 0:
		case at < len(labels):
			c.Kind = kinds[at]
		case at < len(labels)+len(m.Columns):
			col := m.Columns[at-len(labels)]
			c.Unit, c.Kind = col.Unit, map[string]table.Kind{"int": table.Int, "float": table.Float}[col.Type]
		case name == "pid":
			c.Kind = table.Int
		case name == "cpu_s":
			c.Kind, c.Unit = table.Float, "s"
		}
		t.Columns = append(t.Columns, c)
	}
	about, err := json.Marshal(m.Manifest)
	if err != nil {
		return nil, err
	}
	t.About = [][2]string{{"simccl.sweep", string(about)}}
	err = m.records(func(r *Record) error {
		t.Rows++
		t.Columns[0].Add(string(r.Key))
		next := t.Columns[1:]
		for i, l := range labels {
			next[i].Add(setting(r.Point[l], kinds[i]))
		}
		next = next[len(labels):]
		for i, col := range m.Columns {
			next[i].Add(member(r.Row[col.Name], next[i].Kind))
		}
		next = next[len(m.Columns):]
		if next[0].Add(nil); r.Error != "" {
			next[0].Null[t.Rows-1], next[0].Texts[t.Rows-1] = false, r.Error
		}
		if provenance {
			next[1].Add(r.Host)
			next[2].Add(int64(r.PID))
			next[3].Add(r.CPU)
		}
		return nil
	})
	return t, err
}

// kinds determines the type of each setting.
func (m *Merged) kinds(labels []string) ([]table.Kind, error) {
	kinds := make([]table.Kind, len(labels))
	for i := range kinds {
		kinds[i] = table.Int
	}
	err := m.records(func(r *Record) error {
		for i, l := range labels {
			switch v := r.Point[l].(type) {
			case nil:
			case float64:
				if v != float64(int64(v)) && kinds[i] == table.Int {
					kinds[i] = table.Float
				}
			default:
				kinds[i] = table.Text
			}
		}
		return nil
	})
	return kinds, err
}

// setting returns the value of a point's setting for a column.
func setting(v any, k table.Kind) any {
	f, isNumber := v.(float64)
	switch {
	case v == nil:
		return nil
	case k == table.Text:
		return text(v)
	case !isNumber:
		return nil
	case k == table.Int:
		return int64(f)
	}
	return f
}

// member returns the value of a row's member for a column.
func member(v any, k table.Kind) any {
	if v == nil {
		return nil
	}
	n, isNumber := v.(json.Number)
	switch {
	case k == table.Text:
		return text(v)
	case !isNumber:
		return nil
	case k == table.Int:
		i, err := n.Int64()
		if err != nil {
			return nil
		}
		return i
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil
	}
	return f
}

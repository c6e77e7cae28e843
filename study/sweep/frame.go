package sweep

import (
	"encoding/json"
	"errors"
	"go/ast"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/simccl/simccl/internal/fail"
	"go.yaml.in/yaml/v3"
)

// Expr is a value computed from columns: the name of one, or an expression of Go as in
// conditions.
type Expr struct {
	Text string
	expr ast.Expr // nil of the name of a column
}

// NewExpr parses an expression; a text that equals a column's name means that column.
func NewExpr(text string, columns []string) (*Expr, error) {
	for _, c := range columns {
		if c == text {
			return &Expr{Text: text}, nil
		}
	}
	e, err := parse(text)
	if err == nil {
		err = known(e, maxDepth)
	}
	if err != nil {
		return nil, fail.Usage("%q is no column and no expression of columns: %v", text, err)
	}
	return &Expr{text, e}, nil
}

// Value evaluates the expression to a float64, string or bool; nil if a column has no value in this row.
func (e *Expr) Value(row map[string]any) (any, error) {
	if e.expr == nil {
		return row[e.Text], nil
	}
	missing := false
	ast.Inspect(e.expr, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, known := row[columnOf(id.Name)]
			missing = missing || known && v == nil
		}
		return true
	})
	if missing {
		return nil, nil
	}
	v, err := evaluate(e.expr, row)
	if err != nil {
		return nil, fail.Usage("%s: %v; columns are those of sweep.json and the names that the sweep sets",
			e.Text, err)
	}
	return v, nil
}

// Priced are the columns that a price list adds: USD an hour, and USD of a million such
// operations.
var Priced = []string{"usd_h", "usd_million"}

// ColumnNames returns the names that expressions may use.
func (m *Merged) ColumnNames() []string {
	_, header := m.Header(false)
	if m.prices != nil {
		header = append(header, Priced...)
	}
	return header
}

// Each calls f for every row that has a result, with the values of its columns: a float64, a
// string, or nil.
func (m *Merged) Each(f func(r *Record, row map[string]any) error) error {
	labels, header := m.Header(false)
	return m.records(func(r *Record) error {
		if r.Row == nil {
			return nil
		}
		row := map[string]any{}
		for i, l := range labels {
			row[header[1+i]] = plain(r.Point[l])
		}
		for _, c := range m.Columns {
			row[c.Name] = plain(r.Row[c.Name])
		}
		if m.prices != nil {
			m.prices.add(row)
		}
		return f(r, row)
	})
}

// plain converts a JSON value to a value of expressions.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return nil
		}
		return f
	case nil, float64, string, bool:
		return v
	}
	return text(v)
}

// add computes the columns of Priced for a row.
func (p *Prices) add(row map[string]any) {
	number := func(name string) float64 { f, _ := row[name].(float64); return f }
	b := Bill{NICs: int(number("nics")), NICGbit: number("nic_gbit"), Switches: int(number("switches")),
		Ports: int(number("switch_ports")), Cables: int(number("cables")), CableGbit: number("cable_gbit")}
	rate := p.rate(number("ranks"), &b)
	row["usd_h"], row["usd_million"] = rate, rate*number("time_us")/3600
}

func (p *specParser) prices(s *Spec, n *yaml.Node) error {
	s.Prices = &Prices{Years: 4}
	to := map[string]*float64{"gpuHour": &s.Prices.GPUHour, "nic": &s.Prices.NIC,
		"nicGbit": &s.Prices.NICGbit, "switch": &s.Prices.Switch, "switchPort": &s.Prices.SwitchPort,
		"cable": &s.Prices.Cable, "cableGbit": &s.Prices.CableGbit, "years": &s.Prices.Years}
	err := p.members(n, func(k, v *yaml.Node) error {
		price, ok := to[k.Value]
		if !ok {
			return p.fail(k, "write gpuHour, nic, nicGbit, switch, switchPort, cable, cableGbit or years",
				"%q is no price", k.Value)
		}
		f, err := strconv.ParseFloat(v.Value, 64)
		if err != nil || v.Kind != yaml.ScalarNode || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) ||
			k.Value == "years" && f == 0 {
			return p.fail(v, "write a number", "the price of %s", k.Value)
		}
		*price = f
		return nil
	})
	return err
}

// UsePrices reads the price list from the specification in a folder, if it has one.
func (m *Merged) UsePrices(dir string) error {
	name := filepath.Join(dir, specFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail.Input(err)
	}
	s, err := Parse(data, name)
	if err != nil {
		return fail.Input(err)
	}
	m.prices = s.Prices
	return nil
}

package nccltests

import (
	"math"
	"strings"
)

// row reads a line in which a row begins: its size is line[start:end].
func (p *parser) row(line string, start, end int) {
	p.closeRow()
	l := p.layout
	if l == nil || p.ended {
		l = defaultLayout()
	}
	columns := columnsOf(l.upToNCCL(line[start:], end-start), start)
	row, bad := l.row(columns)
	switch {
	case bad == nil:
		t := p.table()
		if t.layout == nil {
			t.layout, p.layout = l, l
		}
		t.Rows = append(t.Rows, row)
	case p.layout == nil || p.ended: // no table has begun: another program's line
		p.other(line)
	default:
		p.open = &openRow{line: p.line, columns: columns, fault: bad}
		if !bad.short {
			p.closeRow()
		}
	}
}

// more takes a line as the rest of the open row, and reports whether it is.
func (p *parser) more(line string) bool {
	columns := columnsOf(p.layout.upToNCCL(line,
		-p.layout.edges[min(len(p.open.columns), len(p.layout.edges))-1]), 0)
	for _, c := range columns {
		if _, ok := value(c.text); !ok && c.text != "N/A" {
			return false
		}
	}
	if len(columns) == 0 {
		return false
	}
	all := append(append([]column{}, p.open.columns...), columns...)
	row, bad := p.layout.row(all)
	switch {
	case bad == nil && len(row.Extra) == 0 && row.plausible():
		p.cur.Rows = append(p.cur.Rows, row)
		p.open = nil
	case bad != nil && bad.short:
		p.open.columns = all
	default:
		return false
	}
	return true
}

// plausible reports whether times and bandwidths of a row that was put together
// belong to its size: algbw is bytes by time, up to a rank's share of them.
func (r *Row) plausible() bool {
	for _, m := range []*Measure{&r.Out, &r.In} {
		if m.Missing || m.TimeUs <= 0 || m.AlgBW < 0.1 {
			continue
		}
		if ratio := float64(r.Size) / m.TimeUs / 1e3 / m.AlgBW; math.IsNaN(ratio) || ratio < 0.45 ||
			ratio > 2.2 {
			return false
		}
	}
	return true
}

// closeRow counts a row whose rest did not come.
func (p *parser) closeRow() {
	if p.open == nil {
		return
	}
	o := p.open
	p.open = nil
	if p.cur.Cut++; p.cur.FirstCut == nil {
		p.cur.FirstCut = &ParseError{File: p.file, Line: o.line.Number, Column: o.line.Column +
			o.fault.column, Text: o.line.Text, Problem: o.fault.problem}
	}
}

// upToNCCL returns the part of a row before a line of NCCL's log that follows it without a line break. The
// name of the host at the beginning of the log line may stick to the row's last value, as in
// "0.00node1:77:88": the right end of the column decides where the value ends. size is the right end of the
// first column, below 0 where the row began on the line before.
func (l *layout) upToNCCL(line string, size int) string {
	at := ncclLine().FindStringIndex(line)
	if at == nil {
		return line
	}
	for _, e := range l.edges {
		cut := size + e
		if cut <= at[0] || cut >= at[1] {
			continue
		}
		if _, ok := value(line[at[0]:cut]); ok {
			return line[:cut]
		}
		break
	}
	return strings.TrimRight(line[:at[0]], " ")
}

package sweep

import (
	"context"
	"fmt"
	"io"

	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
)

// Printer prints the table of a run while its rows are simulated.
type Printer struct {
	Out     io.Writer // nil: rows are collected and not printed
	Program string    // version of the program, for the preface
	Quiet   bool      // ranks are counted, not listed, and nothing says how sure times are
	// Begun is called after the head of the table; Printing before a row is printed,
	// Done after each row, Ended after the last.
	Begun                 func() error
	Printing, Done, Ended func()
}

// Print simulates every row of a run, adds it to the table and prints it as
// nccl-tests does.
func (t *Table) Print(ctx context.Context, r *scenario.Running, p Printer) error {
	var table *nccltests.Table
	if p.Out != nil {
		table = nccltests.NewTable(p.Out, Heads(t.Columns)...)
		lines := Prefaces(r, p.Program)
		table.Brief = p.Quiet
		if p.Quiet { // without its first line a simulated table passes for a measured one
			lines = lines[:1]
		}
		for _, line := range lines {
			table.Preface(line)
		}
		table.Start(&t.Config, Devices(r.Site))
	}
	if err := p.Begun(); err != nil {
		return err
	}
	for simulated, err := range r.Rows(ctx) {
		if err != nil {
			return err
		}
		if row := t.Add(simulated); table != nil {
			p.Printing()
			table.Row(row)
		}
		p.Done()
	}
	if p.Ended(); table == nil {
		return nil
	}
	return table.Finish(&t.Config, &t.Summary)
}

// PrintNotes prints the notes below the table.
func (t *Table) PrintNotes(out io.Writer) {
	for _, note := range t.Notes() {
		fmt.Fprintln(out, "# "+note)
	}
}

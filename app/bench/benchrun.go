// Package bench runs a bench whose ranks have connected: it opens the backend, measures (real/bench) and
// prints nccl-tests' table, and writes the trace and the document. It also reads the topology of the machine
// that the program runs on, as NCCL would (NVML and sysfs, libibverbs, the file that NCCL loads first, NCCL's
// variables that select NICs), and predicts the times of run on it. The caller decides how the ranks find
// each other and which machine is simulated.
package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/trace/chrome"
)

// Bench is a bench whose ranks have connected.
type Bench struct {
	Request *bench.Request
	Spec    *bench.Spec
	Team    *team.Team
	Began   time.Time
	Program string // its version, for the table's head

	Plans *Model // of CPUs; nil on GPUs
	// OpenGPUs opens the GPUs; newModel makes the model of their machine for Predict.
	OpenGPUs func(ctx context.Context, newModel bench.NewModel) (bench.Backend, error)
	Predict  bench.NewModel

	Table io.Writer         // of rank 0
	Wrong func(line string) // is called with a description of wrong elements
	Trace bench.Trace       // without a file: none
	// Traced is called with the trace of this process: a writer to be closed, or nil
	// where NCCL has written the file.
	Traced func(name string, w *chrome.Writer) error
	// env are NCCL's variables of GPUs, and Args the arguments, for the document.
	Env, Args []string
	// Document is called on rank 0 with all that was measured.
	Document func(*nccltests.Report) error

	table *nccltests.Table
}

// Run measures everything. A result that is wrong, and bandwidth below what is
// wanted, are errors of kind fail.No; they come after all is written.
func (b *Bench) Run(ctx context.Context) error {
	back, err := b.open(ctx)
	if err != nil {
		return err
	}
	err = b.sweep(ctx, back)
	if cerr := back.Close(); err == nil {
		err = cerr
	}
	return err
}

func (b *Bench) open(ctx context.Context) (bench.Backend, error) {
	if b.Plans != nil {
		return bench.OpenHost(b.Spec, b.Team, b.Plans.host(b.Request.Backend, b.Spec), b.model)
	}
	return b.OpenGPUs(ctx, b.model)
}

// model returns the machine class and NICs that are known for the devices.
func (b *Bench) model(devices []nccltests.Device) (bench.Model, error) {
	if b.Plans != nil {
		return b.Plans, nil
	}
	return b.Predict(devices)
}

// sweep measures all sizes and writes the requested files.
func (b *Bench) sweep(ctx context.Context, back bench.Backend) error {
	run, err := bench.New(b.Spec, b.Team, back, b.model, b.Began)
	if err != nil {
		return err
	}
	doc, err := run.Sweep(ctx, reporter{b})
	if err != nil {
		return err
	}
	if err := b.table.Finish(&doc.Config, &doc.Summary); err != nil {
		return err
	}
	if b.Trace.File != "" {
		w, err := run.Trace(ctx, b.Trace)
		if err == nil {
			err = b.Traced(b.Team.FileName(b.Trace.File), w)
		}
		if err != nil {
			return err
		}
	}
	if b.Team.Rank == 0 {
		if doc.Args, doc.Env = b.Args, b.Env; b.Plans != nil {
			doc.Env = b.Plans.env()
		}
		if err := b.Document(doc); err != nil {
			return err
		}
	}
	if doc.Summary.OutOfBounds > 0 {
		return fail.Check("%d of %d measurements gave wrong values", doc.Summary.OutOfBounds, 2*len(doc.Rows))
	}
	return doc.Summary.BelowMinBW()
}

// reporter prints the table on rank 0.
type reporter struct{ *Bench }

// Begin prints the head of the table.
func (r reporter) Begin(c *nccltests.Config, about *bench.About) {
	out := r.Table
	if r.Team.Rank != 0 {
		out = io.Discard
	}
	r.table = nccltests.NewTable(out, bench.Heads(r.Spec.Columns)...)
	where := ""
	if !r.Request.OnGPUs() {
		where = " in host memory, backend " + r.Request.Backend
	}
	r.table.Preface(fmt.Sprintf("simccl %s measured%s: %s", r.Program, where, about.Describe))
	r.table.Start(c, about.Devices)
}

// Row prints one row of the table.
func (r reporter) Row(row *nccltests.Row) { r.table.Row(row) }

// Wrong reports the first wrong element of a result.
func (r reporter) Wrong(of, first string) {
	if first != "" {
		r.Bench.Wrong(of + ": " + first)
	}
}

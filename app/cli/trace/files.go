// Package traceview opens trace files by name for the trace commands: checks (trace/validate), statistics,
// comparisons and merges (trace/compare). An error about a file has its name, and the line if there is one;
// its kind is fail.BadInput. It does not interpret traces.
package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/compare"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/inputs"
)

// files opens trace files for a command.
type files struct {
	// Cancelled is polled at each read; its error ends the reading.
	Cancelled func() error
	// Memory limits what is kept of the traces, in bytes.
	Memory units.Bytes
}

// open opens a file that is read as it goes; "-" is standard input.
func (f *files) open(name string) (io.ReadCloser, error) {
	var file io.ReadCloser = io.NopCloser(os.Stdin)
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, fail.Input(err)
		}
		file = opened
	}
	r := &polledReader{file, f.Cancelled}
	return f.known(name, r)
}

// headSize is the number of bytes by which the kind of a file is recognised.
const headSize = 64 << 10

// known refuses a file that is known and no trace.
func (f *files) known(name string, r io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, headSize)
	head, _ := b.Peek(headSize) // its error comes again where the file is read
	if err := inputs.Want(head, name, inputs.Kineto, inputs.ChromeTrace, inputs.Perfetto); err != nil {
		return nil, errors.Join(fail.Input(err), r.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{b, r}, nil
}

// openAll opens several files; closed closes all of them.
func (f *files) openAll(names []string) (readers []io.Reader, closed func(), err error) {
	var files []io.Closer
	closed = func() {
		for _, file := range files {
			file.Close()
		}
	}
	for _, name := range names {
		file, err := f.open(name)
		if err != nil {
			closed()
			return nil, nil, err
		}
		files, readers = append(files, file), append(readers, file)
	}
	return readers, closed, nil
}

// polledReader is a reader that fails once it is cancelled.
type polledReader struct {
	io.ReadCloser
	cancelled func() error
}

// Read reads from the file, or returns the error of a cancelled command.
func (r *polledReader) Read(b []byte) (int, error) {
	if err := r.cancelled(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(b)
}

// placed adds the file's name to an error that has a line and column.
func placed(name string, err error) error {
	var syntax *chrome.SyntaxError
	if errors.As(err, &syntax) {
		return fail.Input(fmt.Errorf("%s:%w", name, syntax))
	}
	var limit *trace.LimitError
	if errors.As(err, &limit) && limit.Line > 0 {
		return fail.Input(fmt.Errorf("%s:%w", name, limit))
	}
	return fail.Input(fmt.Errorf("%s: %w", name, err))
}

// placedIn adds the file's name to an error about one of several traces.
func placedIn(names []string, err error) error {
	var t *compare.TraceError
	if errors.As(err, &t) {
		return placed(names[t.Nth], t.Err)
	}
	return fail.Input(err)
}

// validate checks a trace; all reports every fault, and not only the first of each
// kind.
func (f *files) validate(name string, all bool) (*validate.Report, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rep, err := validate.CheckWith(file, validate.Options{All: all, Memory: f.Memory})
	if err != nil {
		return nil, placed(name, err)
	}
	return rep, nil
}

// stats computes the statistics of a trace.
func (f *files) stats(name string) (*compare.Stats, error) {
	budget := trace.NewBudget(f.Memory)
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s, err := compare.Count(file, budget)
	if err != nil {
		return nil, placed(name, err)
	}
	return s, nil
}

// diff compares two traces whose starts and lengths may differ by tolerance.
func (f *files) diff(names [2]string, tolerance units.Time) (*compare.Differences, error) {
	budget := trace.NewBudget(f.Memory)
	files, closed, err := f.openAll(names[:])
	if err != nil {
		return nil, err
	}
	defer closed()
	d, err := compare.Diff(files[0], files[1], tolerance, budget)
	if err != nil {
		return nil, placedIn(names[:], err)
	}
	return d, nil
}

package trace

import (
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/compare"
	tracefile "github.com/simccl/simccl/trace/file"
)

// merge writes traces to one file: traces of the ranks of one run are joined by the clock of rank 0, others
// are placed next to each other. by is the version and the NCCL release to record as the file's origin. notes
// lists what was left out, or how the ranks were joined. The caller closes the writer.
func (f *files) merge(out string, names []string, by chrome.Meta) (w *chrome.Writer, notes []string,
	err error) {
	budget := trace.NewBudget(f.Memory)
	heads, err := f.heads(names)
	if err != nil {
		return nil, nil, err
	}
	readers, closed, err := f.openAll(names)
	if err != nil {
		return nil, nil, err
	}
	defer closed()
	if one, err := compare.Parts(heads); one {
		if err != nil {
			return nil, nil, fail.Input(err)
		}
		return f.join(out, names, heads, readers, by, budget)
	}
	by.Source = "merged"
	if w, err = tracefile.Create(out, chrome.Options{Meta: by, Cancelled: f.Cancelled}); err != nil {
		return nil, nil, fail.Input(err)
	}
	left, err := compare.Merge(w, names, readers, budget)
	if err != nil {
		w.Abort()
		return nil, nil, placedIn(names, err)
	}
	if left > 0 {
		notes = append(notes,
			fmt.Sprintf("%d events left out: asynchronous, of unknown kinds or without a usable time\n",
				left))
	}
	return w, notes, nil
}

// heads reads the metadata of each file; that of standard input, which cannot be read twice, is empty.
func (f *files) heads(names []string) (out []*chrome.Info, err error) {
	for _, name := range names {
		head := &chrome.Info{}
		if name != "-" {
			file, err := f.open(name)
			if err != nil {
				return nil, err
			}
			head, err = chrome.Head(file)
			file.Close()
			if err != nil {
				return nil, placed(name, err)
			}
		}
		out = append(out, head)
	}
	return out, nil
}

// join writes the traces of the ranks of one run as one trace.
func (f *files) join(out string, names []string, heads []*chrome.Info, traces []io.Reader, by chrome.Meta,
	budget *trace.Budget) (*chrome.Writer, []string, error) {
	meta := compare.JoinedMeta(heads)
	meta.Version, meta.NCCLRules = by.Version, by.NCCLRules
	w, err := tracefile.Create(out, chrome.Options{Meta: meta, Cancelled: f.Cancelled})
	if err != nil {
		return nil, nil, fail.Input(err)
	}
	j, err := compare.Join(w, heads, traces, budget)
	if err != nil {
		w.Abort()
		return nil, nil, placedIn(names, err)
	}
	w.Clock(0, j.Clocks)
	w.LeaveOut("flow", int64(j.Loose+j.Early))
	var notes []string
	for line := range strings.Lines(j.Text(heads)) {
		notes = append(notes, line)
	}
	return w, notes, nil
}

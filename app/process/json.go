package process

import (
	"fmt"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/nccltests"
)

// WriteJSON writes nccl-tests' JSON: to standard output if print is set, and to a file if there is a name. As
// with nccl-tests' -J, the file is the first of NAME, NAME.0, NAME.1, … that does not exist; standard error
// states which.
func (p *Process) WriteJSON(doc *nccltests.Report, name string, print bool) error {
	if print {
		if err := nccltests.WriteJSON(p.Out, doc); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.Out); err != nil {
			return err
		}
	}
	if name == "" {
		return nil
	}
	f, err := newfile.CreateNew(p.Path(name))
	if err != nil {
		return fail.Input(err)
	}
	if err := f.Finish(nccltests.WriteJSON(f, doc)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fmt.Fprintf(p.Notes(), "# Writing JSON output to %s\n", f.Name())
	return nil
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/workload/inputs"
)

// Directory returns an error if the directory of a file to be written does not exist.
func Directory(flag, name string) error {
	if !newfile.Possible(name) {
		return fail.Input(fmt.Errorf("%s %s: no such directory", flag, name))
	}
	return nil
}

// Save writes a file atomically (completely or not at all) and prints its name with what, a word about its
// content.
func (a *App) Save(name, what string, write func(io.Writer) error) error {
	f, err := newfile.Create(a.Path(name))
	if err != nil {
		return fail.Input(err)
	}
	if err := f.Finish(write(f)); err != nil { // a full disk is no input
		return err
	}
	a.Wrote(name, what)
	return nil
}

// SaveFigure writes a figure as PDF if the name ends in .pdf, else as SVG. Equal figures give equal files.
func (a *App) SaveFigure(name, what string, f *chart.Figure) error {
	return a.Save(name, what, func(w io.Writer) error {
		if !strings.HasSuffix(name, ".pdf") {
			_, err := io.WriteString(w, f.SVG())
			return err
		}
		doc := f.Document()
		doc.SetCreationDate(time.Unix(0, 0).UTC())
		doc.SetModificationDate(time.Unix(0, 0).UTC())
		data, err := f.PDF(doc)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
}

// SaveFigures writes charts to a directory, each as SVG and as PDF.
func (a *App) SaveFigures(dir string, all []chart.Named) error {
	if err := os.MkdirAll(a.Path(dir), 0o777); err != nil {
		return fail.Input(err)
	}
	for _, c := range all {
		for _, ending := range []string{".svg", ".pdf"} {
			if err := a.SaveFigure(filepath.Join(dir, c.File+ending), c.Title, c.Figure()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadScenario reads a scenario file; placed gives errors about its members their
// line and column.
func (a *App) ReadScenario(name string) (scenario.Spec, func(error) error, error) {
	data, err := a.ReadAs(name, process.MaxSettings, inputs.Scenario)
	if err != nil {
		return scenario.Spec{}, nil, err
	}
	s, placed, err := scenario.ParsePlaced(data, name)
	if err == nil { // a flag outranks a file
		s = s.WithEnv(a.Env)
	}
	return s, func(err error) error {
		var f *scenario.FieldError
		if errors.As(err, &f) {
			return fail.Input(placed(err))
		}
		return err
	}, fail.Input(err)
}

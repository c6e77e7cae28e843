package cli

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/workload/inputs"
)

// Directory fails where the directory of a file to be written is not there.
func Directory(flag, name string) error {
	if !newfile.Possible(name) {
		return fail.Input(fmt.Errorf("%s %s: no such directory", flag, name))
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

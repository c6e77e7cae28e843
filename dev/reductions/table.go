package reductions

import (
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
)

// operations are those that requests have.
var operations = [...]string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv",
	"alltoall", "gather", "scatter"}

// Operations lists the operations that requests have.
func Operations() []string { return operations[:] }

// Sites has machines that requests share.
type Sites struct {
	spec scenario.Spec
	site *scenario.Site
}

// Running prepares a request.
func (s *Sites) Running(r Request) (*scenario.Running, error) {
	spec, err := r.Spec()
	if err != nil {
		return nil, err
	}
	opt := scenario.Options{Files: Files{}, Settings: config.Sources{NoEnv: true}, Workers: 1}
	if s.site == nil || !equalMachines(&s.spec, &spec) {
		if err := spec.Validate(); err != nil {
			return nil, err
		}
		if s.site, err = scenario.Load(&spec, opt); err != nil {
			return nil, err
		}
		s.spec = spec
	}
	return scenario.On(s.site, spec, opt)
}

package scenario

import (
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// Topology reads a topology file and passes on what is odd in it; no name means
// the built-in machine. Errors are *config.Errors and *InputErrors.
func Topology(name string, opt Options) (*topo.Spec, error) {
	if name == "" {
		return parseTopology(builtin.DGXH100(), builtin.DGXH100Name, &opt)
	}
	cfg, err := Settings(opt.Settings, opt.warn, opt.Cancelled)
	if err != nil {
		return nil, err
	}
	f, err := opt.ReadTopology(name)
	if err != nil {
		return nil, err
	}
	spec, err := parseTopology(f.Data, f.Name, &opt)
	if err == nil {
		spec.Name = name // what was made of another form goes by its file
		Lint(spec, cfg.Topo, opt.warn)
	}
	return spec, err
}

// parseTopology parses a topology file and passes its warnings on.
func parseTopology(data []byte, name string, opt *Options) (*topo.Spec, error) {
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		return nil, &InputError{err}
	}
	for _, w := range spec.Warnings {
		opt.warn(w)
	}
	return spec, nil
}

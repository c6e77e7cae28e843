package scenario

import (
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/lint"
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
	data, _, err := opt.topology(name)
	if err != nil {
		return nil, err
	}
	spec, err := parseTopology(data, name, &opt)
	if err == nil {
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

// Findings checks topology files by themselves, and as nodes of one job, in the
// order of the files. each is called with every finding.
func Findings(files []string, opt Options, each func(*lint.Finding)) error {
	cfg, err := Settings(opt.Settings, opt.warn, opt.Cancelled)
	if err != nil {
		return err
	}
	for _, file := range files {
		data, _, err := opt.topology(file)
		if err != nil {
			return err
		}
		spec, err := topoxml.Parse(data, file)
		if err != nil {
			return &InputError{err}
		}
		for _, f := range lint.Check(spec, lint.AmongNodes(cfg.Topo)) {
			each(&f)
		}
	}
	if w := peersOf(files, opt); w != "" {
		each(&lint.Finding{Severity: lint.Note, Rule: "p2p-channels", Problem: "as nodes of one job, in the order of the files: " + w, Remedy: "explain sendrecv --topo A.xml:4,B.xml:2 gives it for the numbers of a job"})
	}
	return nil
}

// peersOf says whether hosts of the files would disagree on the channels of
// send/recv as nodes of one job, "" where they would not or make no communicator.
func peersOf(files []string, opt Options) string {
	if len(files) < 2 {
		return ""
	}
	var s Spec
	for _, f := range files {
		s.Machine.Nodes = append(s.Machine.Nodes, Nodes{Topo: f, Count: 1})
	}
	opt.Warn, opt.Create = nil, nil
	site, err := Load(&s, opt)
	if err != nil {
		return ""
	}
	return site.Comm.PeerWarning()
}

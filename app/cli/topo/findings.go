package topo

import (
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/lint"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// findings checks topology files by themselves, and as nodes of one job, in the
// order of the files. each is called with every finding.
func findings(files []string, opt scenario.Options, each func(*lint.Finding)) error {
	warn := opt.Warn
	if warn == nil {
		warn = func(error) {}
	}
	cfg, err := scenario.Settings(opt.Settings, warn, opt.Cancelled)
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := opt.ReadTopology(file)
		if err != nil {
			return err
		}
		spec, err := topoxml.Parse(f.Data, f.Name)
		if err != nil {
			return &scenario.InputError{Err: err}
		}
		for _, f := range lint.Check(spec, lint.AmongNodes(cfg.Topo)) {
			each(&f)
		}
	}
	if w := peersOf(files, opt); w != "" {
		each(&lint.Finding{Severity: lint.Note, Rule: "p2p-channels",
			Problem: "as nodes of one job, in the order of the files: " + w,
			Remedy:  "explain sendrecv --topo A.xml:4,B.xml:2 gives it for the numbers of a job"})
	}
	return nil
}

// peersOf says whether hosts of the files would disagree on the channels of
// send/recv as nodes of one job, "" where they would not or make no communicator.
func peersOf(files []string, opt scenario.Options) string {
	if len(files) < 2 {
		return ""
	}
	var s scenario.Spec
	for _, f := range files {
		s.Machine.Nodes = append(s.Machine.Nodes, scenario.Nodes{Topo: f, Count: 1})
	}
	opt.Warn, opt.Create = nil, nil
	site, err := scenario.Load(&s, opt)
	if err != nil {
		return ""
	}
	return site.Comm.PeerWarning()
}

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
		if site := jobOf([]string{file}, opt); site != nil && site.Comm.HeadWarning() != "" {
			each(&lint.Finding{Severity: lint.Note, Rule: "nvls-order", Pos: spec.Root.Origin, Path: "system",
				Problem: site.Comm.HeadWarning(),
				Remedy:  "explain all_gather says at which sizes NCCL takes NVLS"})
		}
	}
	if len(files) < 2 {
		return nil
	}
	if site := jobOf(files, opt); site != nil && site.Comm.PeerWarning() != "" {
		each(&lint.Finding{Severity: lint.Note, Rule: "p2p-channels",
			Problem: "as nodes of one job, in the order of the files: " + site.Comm.PeerWarning(),
			Remedy:  "explain sendrecv --topo A.xml:4,B.xml:2 gives it for the numbers of a job"})
	}
	return nil
}

// jobOf joins the hosts of the files to a communicator; nil where they make none.
func jobOf(files []string, opt scenario.Options) *scenario.Site {
	var s scenario.Spec
	for _, f := range files {
		s.Machine.Nodes = append(s.Machine.Nodes, scenario.Nodes{Topo: f, Count: 1})
	}
	opt.Warn, opt.Create = nil, nil
	site, err := scenario.Load(&s, opt)
	if err != nil {
		return nil
	}
	return site
}

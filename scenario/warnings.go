package scenario

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/lint"
)

// LintWarning says how many faults topo/lint finds in a topology file.
type LintWarning struct{ lint.Summary }

// Error counts them: "a.xml: 1 error, 2 warnings".
func (w *LintWarning) Error() string { return w.File + ": " + w.String() }

func (o *Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}

// doubts warns of what is odd in the machine: faults of its files, filters of
// NICs that match nothing, a host without a fabric among NVLink domains.
func (l *loader) doubts(files []fabric.Member) {
	if n := l.site.Cluster.NoFabric; n != "" {
		l.opt.warn(&FieldError{Path: "machine.nvlinkDomain", Problem: n + " is one host and reports no " +
			"NVLink fabric, so NCCL takes every host of the NVLink domains for a node of its own " +
			"(mnnvl.cc:27)",
			Hint: "where it has one, write 1"})
	}
	if name := l.trays(files); name != "" {
		l.opt.warn(&FieldError{Path: "machine.nvlinkDomain", Problem: "GPUs of " + name +
			" have C2C and NVLinks to a " +
			"switch, as those of an NVLink domain of several hosts; each host is a node of its own here",
			Hint: "where they share a domain, write how many hosts it has; 1 says that each is alone"})
	}
	if l.site.named {
		l.lint(files)
	}
	idleFilters(l.site.Config, files, l.site.Cluster, l.opt.warn)
}

// trays names a file of several hosts that look as if they shared an NVLink domain, where
// nothing says whether they do; "" where there is none.
func (l *loader) trays(files []fabric.Member) string {
	hosts := 0
	for _, m := range files {
		hosts += m.Count
	}
	if hosts < 2 || l.spec.Machine.NVLinkDomain > 0 || l.site.Config.Topo.SplitHosts {
		return ""
	}
	for i, m := range files {
		if l.sources[i].domain > 1 || len(decl.Hosts(m.Spec)) > 1 {
			continue
		}
		for _, g := range m.Spec.Root.All("gpu") {
			if link := g.Child("nvlink"); link != nil && g.Child("c2c") != nil {
				if class, _ := link.Get("tclass"); strings.HasPrefix(class, "0x0680") {
					return m.Spec.Name
				}
			}
		}
	}
	return ""
}

// lint warns of each file once; of built-in machines, which a user cannot repair, not at
// all: topo lint NAME has what is odd in them.
func (l *loader) lint(files []fabric.Member) {
	seen := map[string]bool{}
	for _, s := range l.sources {
		seen[s.file] = s.Machine != nil
	}
	for _, m := range files {
		if !seen[m.Spec.Name] {
			Lint(m.Spec, l.site.Config.Topo, l.opt.warn)
		}
		seen[m.Spec.Name] = true
	}
}

// Lint passes on the faults of a topology file: a *LintWarning, and the places of
// GPUs that NCCL leaves out.
func Lint(spec *topo.Spec, p topo.Params, warn func(error)) {
	sum, left, ok := lint.Summarise(spec, p)
	for _, f := range left {
		warn(fmt.Errorf("%s: %s", f.Pos, f.Problem))
	}
	if ok {
		warn(&LintWarning{sum})
	}
}

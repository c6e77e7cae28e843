package scenario

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/lint"
)

// LintWarning says how many faults topo/lint finds in a topology file.
type LintWarning struct{ lint.Summary }

// Error counts them: "a.xml: 1 error, 2 warnings".
func (w *LintWarning) Error() string { return w.File + ": " + w.String() }

// warn passes a warning on.
func (o *Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}

// doubts warns of what is odd in the machine: faults of its files, filters of
// NICs that match nothing, a host without a fabric among NVLink domains.
func (l *loader) doubts(files []fabric.Member) {
	if n := l.site.Cluster.NoFabric; n != "" {
		l.opt.warn(&FieldError{Path: "machine.nvlinkDomain", Problem: n + " is one host and reports no NVLink fabric, so NCCL takes every host of the NVLink domains for a node of its own (mnnvl.cc:27)",
			Hint: "where it has one, write 1"})
	}
	if l.site.named {
		l.lint(files)
	}
	l.idleFilters(files)
}

// lint warns of each file once.
func (l *loader) lint(files []fabric.Member) {
	seen := map[string]bool{}
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

// idleFilters warns of entries of a filter that match no device of the machine.
func (l *loader) idleFilters(files []fabric.Member) {
	warn := func(name, text string, entries, there []string) {
		if len(entries) > 0 {
			l.opt.warn(fmt.Errorf("%s=%s (%s): %s matches nothing; there are %s", name, text, l.site.Config.Value(name).Origin, strings.Join(entries, ", "), some(there)))
		}
	}
	if v := l.site.Config.Text("NCCL_IB_HCA"); v.Value != "" {
		var specs []*topo.Spec
		for _, x := range files {
			specs = append(specs, x.Spec)
		}
		entries, there := topo.UnmatchedHCAs(specs, v.Value)
		warn("NCCL_IB_HCA", v.Value, entries, there)
	}
	if v := l.site.Config.Text("NCCL_SOCKET_IFNAME"); v.Value != "" {
		var systems []*topo.System
		for i := range l.site.Cluster.Classes {
			systems = append(systems, l.site.Cluster.Classes[i].Host.Systems...)
		}
		entries, there := topo.UnmatchedInterfaces(systems, v.Value)
		warn("NCCL_SOCKET_IFNAME", v.Value, entries, there)
	}
}

// some lists the first names of many.
func some(names []string) string {
	const shown = 16
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

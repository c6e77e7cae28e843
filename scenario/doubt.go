package scenario

import (
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/tuning/netplugin"
)

// doubt is by how much times are less certain than the machine class says, because
// its constants were measured with another release. A class from a file is taken to be
// measured with the release that is asked for.
func (m *Site) doubt() float64 {
	if m.measured {
		return 0
	}
	return m.Config.Rules.TimesDoubt()
}

// Uncertainty is the relative uncertainty of a predicted time, 0.05 for 5 %: the
// machine class's, and more for a release with which it was not measured.
func (m *Site) Uncertainty() float64 { return m.Class().Uncertainty + m.doubt() }

// Times says in a line what the machine class is and how sure its times are.
func (m *Site) Times() string {
	class, doubt := *m.Class(), m.doubt()
	class.Uncertainty += doubt
	text := timesDoubt(&class, m.Between(), m.plugin)
	if doubt > 0 {
		text += "; " + m.Config.Rules.DoubtText()
	}
	return text
}

// timesDoubt says in a line what a class is and how sure its times are between machines; plugin
// is the network's, whose settings are taken, or empty.
func timesDoubt(class *gpu.Class, between gpu.Network, plugin string) string {
	text := class.Summary(between)
	switch p := netplugin.Of(class.Network); {
	case between == gpu.NoNetwork:
	case plugin != "":
		text += "; settings of " + plugin + ", as simccl env has them"
	case p != nil: // the decision on a file is NCCL's own
		text += "; without settings of " + p.Name + ", which --network-class " + class.Network + " has"
	}
	return text
}

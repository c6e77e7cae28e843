package scenario

import "github.com/simccl/simccl/scenario/internal/nics"

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
	text := nics.Times(&class, m.Between(), m.plugin)
	if doubt > 0 {
		text += "; " + m.Config.Rules.DoubtText()
	}
	return text
}

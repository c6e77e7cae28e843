package sweep

import (
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
)

// Bill counts the parts of a machine's network. An ideal network has NICs and one cable each.
type Bill struct {
	NICs      int     `json:"nics"`
	NICGbit   float64 `json:"nic_gbit"` // all together, Gbit/s of a direction
	Switches  int     `json:"switches"`
	Ports     int     `json:"switch_ports"` // of switches, those in use
	Cables    int     `json:"cables"`
	CableGbit float64 `json:"cable_gbit"`
}

var billColumns = []Col{{"nics", "int", ""}, {"nic_gbit", "float", "Gbit/s"}, {"switches", "int", ""},
	{"switch_ports", "int", ""}, {"cables", "int", ""}, {"cable_gbit", "float", "Gbit/s"}}

// billOf counts the parts of a machine; for a fabric file also unused cables.
func billOf(s *scenario.Site) Bill {
	var b Bill
	for id := range s.Cluster.NPorts() {
		b.NICs++
		b.NICGbit += 8 * float64(s.Cluster.Port(fabric.PortID(id)).BW)
	}
	if s.Network == nil {
		b.Cables, b.CableGbit = b.NICs, b.NICGbit
		return b
	}
	isSwitch := map[string]bool{}
	for _, w := range s.Network.Switches {
		isSwitch[w.Name] = true
	}
	b.Switches = len(s.Network.Switches)
	for _, c := range s.Network.Cables {
		n := max(1, c.Count)
		b.Cables += n
		b.CableGbit += float64(n) * c.Gbit
		for _, end := range []string{c.A, c.B} {
			if isSwitch[end] {
				b.Ports += n
			}
		}
	}
	return b
}

// Prices are the costs of parts, in one currency, here called USD.
type Prices struct {
	GPUHour                                                   float64
	NIC, NICGbit, Switch, SwitchPort, Cable, CableGbit, Years float64
}

// hoursOfYear is the mean number of hours of a year, with leap years.
const hoursOfYear = 8766

// rate returns the cost of a machine per hour: its GPUs, and its network's price spread over p.Years.
func (p *Prices) rate(gpus float64, b *Bill) float64 {
	network := p.NIC*float64(b.NICs) + p.NICGbit*b.NICGbit + p.Switch*float64(b.Switches) +
		p.SwitchPort*float64(b.Ports) + p.Cable*float64(b.Cables) + p.CableGbit*b.CableGbit
	return p.GPUHour*gpus + network/(p.Years*hoursOfYear)
}

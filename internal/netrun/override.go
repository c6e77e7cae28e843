package netrun

import (
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/sim/wire/packet"
	"github.com/simccl/simccl/sim/wire/packet/ns3"
	"github.com/simccl/simccl/units"
)

// Override is what a user sets in place of a configuration's settings.
type Override struct {
	CC        string   // one of packet.Presets; empty: the configuration's
	Repair    string   // gbn or sr; empty: the configuration's
	TimeoutUs float64  // 0: none
	Retries   int      // 0: for ever
	Paths     int      // of a flow; 0: one
	Credits   int64    // bytes behind each link; 0: Ethernet
	Faults    []string // as parseFault reads them
}

// reorder is how many frames one may be overtaken by when a flow takes several
// paths.
const reorder = 1 << 16

// apply changes a scenario.
func (v *Override) apply(x *ns3.Scenario) error {
	c := &x.Config
	if v.CC != "" {
		cc, err := packet.Preset(v.CC, hostRate(&x.Network))
		if err != nil {
			return fail.Usage("{CC}: %v", err)
		}
		c.CC, c.Marking = cc, x.Marking
		if cc.Kind == packet.NoCC {
			c.Marking = nil
		} else if len(c.Marking) == 0 {
			return fail.Usage("{CC} %s needs ECN: name the rates of links in KMIN_MAP, KMAX_MAP and PMAX_MAP", v.CC)
		}
	}
	switch v.Repair {
	case "", "gbn":
	case "sr":
		c.Repair.Selective = true
	default:
		return fail.Usage("{Repair} %q: write gbn or sr", v.Repair)
	}
	if !(v.TimeoutUs >= 0 && v.TimeoutUs <= 1e9) || v.Retries < 0 || v.Credits < 0 || v.Paths < 0 {
		return fail.Usage("{RepairTimeout} %g, {Retries} %d, {Paths} %d, {Credits} %d: none may be negative", v.TimeoutUs, v.Retries, v.Paths, v.Credits)
	}
	c.Repair.Timeout, c.Repair.Retries = units.FromMicros(v.TimeoutUs), int32(min(v.Retries, 1<<30))
	c.Buffer.Credits, c.Paths = v.Credits, v.Paths
	if v.Paths > 1 {
		c.Repair.Reorder = reorder
	}
	first := units.Time(1<<63 - 1)
	for i := range x.Flows {
		first = min(first, x.Flows[i].Start)
	}
	for _, text := range v.Faults {
		f, err := parseFault(&x.Network, text)
		if err != nil {
			return err
		}
		f.From += first
		if f.To > 0 {
			f.To += first
		}
		c.Faults = append(c.Faults, f)
	}
	return nil
}

// hostRate is the rate of the first host's link.
func hostRate(n *packet.Network) int64 {
	for _, c := range n.Cables {
		if !n.Switch[c.A] || !n.Switch[c.B] {
			return c.Rate
		}
	}
	return 0
}

// parseFault reads A-B:WHAT or A-B:WHAT@FROM-TO: two nodes that a cable joins,
// down, slow=SHARE, loss=SHARE or storm (B pauses A), and times in µs after the
// first start.
func parseFault(n *packet.Network, text string) (f packet.Fault, err error) {
	wrong := fail.Usage("{Fault} %q: write A-B:down, slow=0.5, loss=0.01 or storm, and when, as 0-7:down@100-300 (µs after the first start)", text)
	nodes, what, ok := strings.Cut(text, ":")
	a, b, ok2 := strings.Cut(nodes, "-")
	va, err1 := strconv.Atoi(a)
	vb, err2 := strconv.Atoi(b)
	if !ok || !ok2 || err1 != nil || err2 != nil {
		return f, wrong
	}
	what, when, timed := strings.Cut(what, "@")
	if timed {
		from, to, ok := strings.Cut(when, "-")
		x, err1 := strconv.ParseFloat(from, 64)
		y, err2 := 0.0, error(nil)
		if ok {
			y, err2 = strconv.ParseFloat(to, 64)
		}
		if err1 != nil || err2 != nil || !(x >= 0 && x <= 1e9) || ok && !(y > x && y <= 1e9) {
			return f, wrong
		}
		f.From, f.To = units.FromMicros(x), units.FromMicros(y)
	}
	name, share, shared := strings.Cut(what, "=")
	v := 0.0
	if shared {
		if v, err = strconv.ParseFloat(share, 64); err != nil {
			return f, wrong
		}
	}
	switch {
	case name == "down" && !shared:
		f.Down = true
	case name == "storm" && !shared:
		f.Storm = true
	case name == "slow" && shared && v > 0 && v <= 1:
		f.Slow = v
	case name == "loss" && shared && v >= 0 && v <= 1:
		f.Loss = v
	default:
		return f, wrong
	}
	for i, c := range n.Cables {
		if int(c.A) == va && int(c.B) == vb || int(c.A) == vb && int(c.B) == va {
			f.Cable = i
			if f.Storm && int(c.A) != va {
				return f, fail.NotYet("storms come from the second node of a link as the topology has it", "{Fault} %s", text)
			}
			return f, nil
		}
	}
	return f, fail.Usage("{Fault} %q: no link joins nodes %d and %d", text, va, vb)
}

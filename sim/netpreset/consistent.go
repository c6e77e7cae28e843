package netpreset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/topo/fabric"
)

// wrong is an error of a member of packets.
func wrong(key, format string, args ...any) error {
	return &fabric.PacketsError{Key: key, Problem: fmt.Sprintf(format, args...)}
}

// consistent finds members that contradict each other, and those of a file that would have
// no effect beside its others. Where something is chosen in place of a file's, it may leave
// members without effect, or give them one.
func consistent(p, own *fabric.Packets, as Choice, n *fabric.Network) error {
	if frac, exp := math.Frexp(*p.Alpha); frac != 0.5 {
		return wrong("alpha", "alpha %g: switches shift by it; write a power of two, %g or %g", *p.Alpha,
			math.Ldexp(0.5, exp), math.Ldexp(1, exp))
	}
	windowed := as.CC == "" && slices.Contains([]string{"hpcc", "dctcp", "swift", "nscc"},
		strings.ToLower(p.CC))
	switch {
	case p.XOn != nil && p.XOff == nil:
		return wrong("xon_kb", "xon_kb %g without xoff_kb: the two replace alpha together; add xoff_kb",
			*p.XOn)
	case p.XOn != nil && *p.XOn > *p.XOff:
		return wrong("xon_kb",
			"xon_kb %g is above xoff_kb %g: a neighbour resumes at or below the threshold that paused it",
			*p.XOn, *p.XOff)
	case own.Credits != nil && p.Link != "infiniband":
		return wrong("credits_kb", "credits_kb %g: links of ethernet have pauses in place of credits; "+
			"write link infiniband, or leave it out", *own.Credits)
	case own.Watchdog != nil && *own.Watchdog > 0 && p.Link == "infiniband":
		return wrong("watchdog_us",
			"watchdog_us %g: links of infiniband pause nothing, they have credits; leave it out",
			*own.Watchdog)
	case own.CNP == "frame" && p.Link == "infiniband":
		return wrong("cnp", "cnp frame: CNPs are frames of RoCE; write link ethernet, or leave it out")
	case own.CNP != "" && as.CC == "" && !strings.HasPrefix(strings.ToLower(p.CC), "dcqcn:"):
		return wrong("cnp",
			"cnp %s: cc %s has no notifications of congestion; write one of dcqcn, or leave it out", own.CNP,
			p.CC)
	case own.Trim != nil && p.Repair != "trim":
		return wrong("trim_kb",
			"trim_kb %g: with repair %s switches cut no frames; write repair trim, or leave it out",
			*own.Trim, p.Repair)
	case own.Gap != nil && p.Balance != "flowlet" && as.Balance == "":
		return wrong("flowlet_us", "flowlet_us %g: with balance %s no silence changes a route; write "+
			"balance flowlet, or leave it out", *own.Gap, p.Balance)
	case own.Quantum != nil && p.Balance == "queue-pair" && as.Balance == "":
		return wrong("quantum_kb", "quantum_kb %g: with balance queue-pair no queue decides a route; write "+
			"balance flowlet or packet, or leave it out", *own.Quantum)
	case own.AckEach != nil && *own.AckEach > 1 && p.Repair != "gbn":
		return wrong("ack_every",
			"ack_every %g: with repair %s each frame is acknowledged; write 1, or leave it out", *own.AckEach,
			p.Repair)
	case own.AckEach != nil && *own.AckEach > 1 && windowed:
		return wrong("ack_every",
			"ack_every %g: cc %s needs an acknowledgement of each frame; write 1, or leave it out",
			*own.AckEach, p.CC)
	case own.Window != nil && *own.Window > 0 && windowed:
		return wrong("window_kb", "window_kb %g: cc %s has windows of its own; leave it out", *own.Window,
			p.CC)
	}
	if err := unpaused(p, own); err != nil || p.DCQCN == nil {
		return err
	}
	return withinPorts(p.DCQCN, n)
}

// unpaused finds members that say when neighbours are paused, where none is.
func unpaused(p, own *fabric.Packets) error {
	why := ""
	switch {
	case p.Link == "infiniband":
		why = "links of infiniband have credits in place of pauses"
	case p.Repair == "trim":
		why = "with repair trim nothing pauses"
	default:
		return nil
	}
	for _, m := range []struct {
		key string
		v   *float64
	}{{"buffer_kb", own.Buffer}, {"alpha", own.Alpha}, {"reserve_kb", own.Reserve}, {"resume_kb", own.Resume},
		{"headroom_delays", own.Delays}, {"xoff_kb", own.XOff}, {"xon_kb", own.XOn},
		{"pause_quanta", own.Quanta}} {
		if m.v != nil && *m.v > 0 {
			return wrong(m.key, "%s %g: %s; leave it out", m.key, *m.v, why)
		}
	}
	return nil
}

// withinPorts finds rates of DCQCN above that of the slowest port of a host.
func withinPorts(d *fabric.DCQCN, n *fabric.Network) error {
	least := math.Inf(1)
	for i := range n.Cables {
		for _, end := range []string{n.Cables[i].A, n.Cables[i].B} {
			if _, host := fabric.ParseEnd(end); host {
				least = min(least, n.Cables[i].Gbit*1e3)
			}
		}
	}
	for _, m := range []struct {
		key string
		v   *float64
	}{{"rpg_min_rate", d.MinRate}, {"rpg_ai_rate", d.AI}, {"rpg_hai_rate", d.HAI}} {
		if m.v != nil && *m.v > least {
			return wrong("dcqcn."+m.key,
				"%s %g: is above the %g Mbit/s of a host's port; rates are in Mbit/s", m.key, *m.v, least)
		}
	}
	return nil
}

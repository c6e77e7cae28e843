package cc

import (
	"strings"

	"github.com/simccl/simccl/units"
)

// Presets lists the names that Preset accepts, for help and errors.
const Presets = "none, dcqcn:paper, dcqcn:cx7, dcqcn:ns3, hpcc, timely, dctcp, swift, nscc"

// Preset returns the parameters of a congestion control by name, for hosts of a rate in bit/s.
//
//   - none: PFC or credits alone.
//   - dcqcn:paper: SIGCOMM'15: g 1/256, K and T 55 µs, B 10 MB, F 5, 40 Mb/s, a
//     notification in 50 µs; it gives no hyper increase: ten times the additive.
//   - dcqcn:cx7: defaults of ConnectX-7's firmware: dce_tcp_g 1019 (keeps 1019/1024
//     each µs), rate_reduce_monitor_period 4 µs, rpg_min_dec_fac 50 %,
//     rpg_time_reset 300 µs, rpg_byte_reset 32767 of 64 bytes, rpg_threshold 1, 5 and
//     50 Mb/s, 1 Mb/s at least, notifications 4 µs apart.
//   - swift: SIGCOMM'20. The paper leaves most constants to operators; these are
//     those of htsim (swift.cpp, there called guesses): a target of 20 us and a 6.55th of it a
//     switch, 100 us more for small windows (0.1 to 100 frames), one frame a round
//     trip, 0.8 of the excess, cuts of at most a half.
//   - dcqcn:ns3: run.py of the HPCC simulator, increases in proportion to the rate.
//   - hpcc, timely, dctcp: SIGCOMM'19, '15 and '10 with the constants of that run.py; with hpcc
//     and dctcp at most a round trip of a route is in flight, and hpcc's frames carry the
//     records of switches (Telemetered).
//   - nscc: of Ultra Ethernet, as in htsim, scaled to the round trip of a route. Switches
//     trim nothing here: losses are detected by gaps and timeouts.
func Preset(name string, rate int64) (Params, error) {
	const us = units.Microsecond
	c := Params{Kind: DCQCN, Gain: 1.0 / 256}
	switch strings.ToLower(name) {
	case "none", "pfc":
		return Params{}, nil
	case "dcqcn:paper":
		c.AlphaPeriod, c.DecreasePeriod, c.IncreasePeriod = 55*us, 50*us, 55*us
		c.FastRecovery, c.AI, c.HAI, c.MinRate = 5, 40e6, 400e6, 10e6
		c.Immediate, c.CNPGap, c.ByteReset = true, 50*us, 10e6
	case "dcqcn:cx7":
		c.Gain, c.Alpha = 5.0/1024, 1023.0/1024
		c.AlphaPeriod, c.DecreasePeriod, c.IncreasePeriod = us, 4*us, 300*us
		c.FastRecovery, c.AI, c.HAI, c.MinRate = 1, 5e6, 50e6, 1e6
		c.CNPGap, c.ByteReset, c.MostCut = 4*us, 32767*64, 0.5
	case "dcqcn:ns3":
		c.AlphaPeriod, c.DecreasePeriod, c.IncreasePeriod = us, 4*us, 300*us
		c.FastRecovery, c.MinRate = 1, 100e6
		c.AI, c.HAI = 5*rate/25_000, 50*rate/25_000
	case "hpcc":
		c = Params{Kind: HPCC, ByRoute: true, VarWindow: true, MinRate: 100e6, AI: 10 * rate / 25_000,
			Utilisation: 0.95, FastReact: true, Multi: max(1, rate/25e9)}
	case "timely":
		c = Params{Kind: Timely, MinRate: 100e6, AI: rate / 1000, HAI: rate / 200}
	case "dctcp":
		c = Params{Kind: DCTCP, ByRoute: true, VarWindow: true, MinRate: 100e6, Gain: 1.0 / 16, RateAI: 615e6}
	case "nscc":
		c = Params{Kind: NSCC, ByRoute: true, MinRate: 1e6}
	case "swift":
		base := 20 * us
		c = Params{Kind: Swift, MinRate: 1e6, Swift: SwiftParams{Base: base, PerHop: base * 100 / 655,
			Range: 5 * base, LeastFlows: 0.1, MostFlows: 100,
			AI: 1, Beta: 0.8, MostCut: 0.5, Least: 0.001, Most: 100, Resets: 5}}
	default:
		return c, wrong("%q is not a congestion control: write one of %s", name, Presets)
	}
	return c, nil
}

// Source names the origin of Preset's constants for a name; "" for an unknown name.
func Source(name string) string {
	const runpy, htsim = "run.py of the HPCC simulator", "constants of htsim"
	switch strings.ToLower(name) {
	case "none", "pfc":
		return "PFC or credits alone"
	case "dcqcn:paper":
		return "constants of SIGCOMM'15"
	case "dcqcn:cx7":
		return "defaults of ConnectX-7's firmware"
	case "dcqcn:ns3", "hpcc", "timely", "dctcp":
		return runpy
	case "swift":
		return "SIGCOMM'20, " + htsim
	case "nscc":
		return "Ultra Ethernet, " + htsim
	}
	return ""
}

// SwiftParams are the constants of Swift (Kumar et al., SIGCOMM'20, section 3).
// Its target is Base + hops x PerHop + min(max(0, a/sqrt(cwnd)+b), Range), where a
// and b make the last term Range at a window of LeastFlows frames and 0 at
// MostFlows.
type SwiftParams struct {
	Base, PerHop, Range   units.Time
	LeastFlows, MostFlows float64 // frames: fs_min_cwnd and fs_max_cwnd
	AI                    float64 // frames a round trip
	Beta, MostCut         float64 // of the excess over the target; of the window
	Least, Most           float64 // frames: bounds of the window
	Resets                int32   // timeouts after which the window is Least
}

func (p *SwiftParams) check() error {
	switch {
	case p.Base < 0 || p.PerHop < 0 || p.Range < 0 || p.Base == 0:
		return wrong("Swift with targets of %v, %v a hop and a range of %v: the first must be positive, "+
			"the others not negative", p.Base, p.PerHop, p.Range)
	case !(p.LeastFlows > 0 && p.MostFlows > p.LeastFlows):
		return wrong("Swift scales targets between windows of %g and %g frames: write 0 < least < most",
			p.LeastFlows, p.MostFlows)
	case !(p.AI > 0) || !(p.Beta > 0) || !(p.MostCut > 0 && p.MostCut < 1) || !(p.Least > 0 && p.Most >= 1 &&
		p.Most > p.Least) || p.Resets < 0:
		return wrong("Swift with an increase of %g, beta %g, cuts of at most %g and windows of %g to %g "+
			"frames: all must be positive, cuts below 1", p.AI, p.Beta, p.MostCut, p.Least, p.Most)
	}
	return nil
}

// Telemetered is the bytes of HPCC's INT in a frame (five records of 8 bytes and a count, as in ns-3).
const Telemetered = 42

// Thresholds returns the ECN thresholds that a control needs at a rate in bit/s: no marks below least bytes,
// all above most, probability share at most. ok is false where the switches' own thresholds apply. DCTCP
// marks everything above 3 kB per Gb/s (run.py); NSCC from 0.2 to 0.8 of the bandwidth-delay product of a
// round trip in ps (htsim, main_uec.cpp).
func (k Kind) Thresholds(rate int64, rtt units.Time) (least, most int64, share float64, ok bool) {
	switch k {
	case DCTCP:
		at := 3 * rate / 1e6
		return at, at, 1, true
	case NSCC:
		bdp := float64(rate) / 8 * float64(rtt) / 1e12
		return int64(0.2 * bdp), int64(0.8 * bdp), 1, true
	}
	return 0, 0, 0, false
}

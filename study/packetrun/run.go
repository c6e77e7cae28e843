package packetrun

import (
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/simfiles"
	"github.com/simccl/simccl/packet/uec"
	"github.com/simccl/simccl/units"
)

// Presets lists the names of congestion controls.
const Presets = packet.Presets

// Options control the run of a scenario.
type Options struct {
	Read    func(name string) ([]byte, error) `json:"-"`
	Seed    uint64                            `json:"seed"`
	Workers int                               `json:"-"`
	Timing  bool                              `json:"-"` // measure the CPU time of the simulation
	// EveryUs is the interval of samples of queues and rates, in µs; 0: none.
	EveryUs float64 `json:"-"`
	Compat  string  `json:"compat"`
	// Dry reads and checks what can be without simulating; the Report is empty.
	Dry bool `json:"-"`
	Traffic
	Override
	Poll func() error                     `json:"-"`
	Warn func(format string, args ...any) `json:"-"`
}

// Frame sizes of RoCEv2 on Ethernet in bytes, with preamble, FCS and inter-frame gap. Overhead of a data
// frame: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, and 24 for preamble, FCS and gap. An acknowledgement
// has an AETH of 4; a PFC frame is of 64; a CNP has 16 bytes of its own.
const (
	roceHeader = 82
	roceAck    = 86
	rocePause  = 84
	roceCNP    = 98
)

// NS3 runs the scenario of a configuration of the HPCC simulator.
func NS3(config string, o Options) (*Report, error) {
	x, err := simfiles.LoadNS3(config, o.Read)
	var place *fail.FileError
	switch {
	case errors.As(err, &place):
		return nil, fail.Input(err)
	case err != nil:
		return nil, refused(err)
	}
	for _, at := range x.Ignored {
		o.Warn("%s: not a key of the HPCC simulator: ignored", at)
	}
	model := "HPCC on ns-3"
	switch o.Compat {
	case "ns3":
	case "ns3:exact":
		x.Config.EventOrderAlways = true
	case "none":
		model = "RoCEv2 on Ethernet"
		x.Config.Frames.Pause = rocePause
		ethernetFrames(x)
		x.Config.WholeNanos, x.Config.EventOrder, x.Config.CC.RateCodes = false, false, false
	default:
		return nil, fail.Usage("{Compat} %q: write ns3, ns3:exact or none", o.Compat)
	}
	if err := o.traffic(x); err != nil {
		return nil, err
	}
	if err := o.apply(x, o.Compat == "none"); err != nil {
		return nil, err
	}
	if o.Compat == "ns3:exact" && !x.Config.EventOrder {
		return nil, fail.Usage("{Compat} ns3:exact with {MarkAt}, {Quanta} or {Through}: the simulator " +
			"does nothing like it, so that its order of events is not kept: leave one out")
	}
	switch cc := &x.Config.CC; {
	case cc.Kind != packet.NoCC && cc.MinRate < 1:
		return nil,
			fail.Input(fmt.Errorf("%s: MIN_RATE 0 with %s: a rate that falls to 0 never rises again: write "+
				"at least 1bps", config, cc.Kind))
	case cc.Kind == packet.HPCC && cc.Window == 0 && !cc.ByRoute:
		return nil,
			fail.Input(fmt.Errorf("%s: CC_MODE 3 with HAS_WIN 0: HPCC divides queues by the window: write "+
				"HAS_WIN 1", config))
	}
	r, err := run(&x.Network, x.Flows, &x.Config, x.Carried, o)
	if err != nil {
		return nil, err
	}
	r.Model = fmt.Sprintf("%s, %s", model, x.Config.CC.Kind)
	if o.CC != "" {
		r.Model = fmt.Sprintf("%s, %s", model, o.CC)
	}
	return r, nil
}

// traffic replaces the flows of a scenario where others are asked for: they start when its own would.
func (o *Options) traffic(x *simfiles.NS3Scenario) (err error) {
	if o.Kind == "" {
		return nil
	}
	first := 2 * units.Second // as the simulator's generator has it
	for i := range x.Flows {
		if i == 0 || x.Flows[i].Start < first {
			first = x.Flows[i].Start
		}
	}
	x.Flows, err = o.generate(&x.Network, first, o.Seed)
	return err
}

// run simulates and reports. carried is the number of bytes that congestion control adds to each frame.
func run(n *packet.Network, flows []packet.Flow, c *packet.Config, carried int, o Options) (*Report, error) {
	if us := o.EveryUs; us != 0 && !(us >= 0.001 && us <= 1e9) {
		return nil, fail.Usage("{EveryUs} %g: write 0 (no samples), or 0.001 to 1e9 us", us)
	}
	if o.Dry {
		return &Report{}, nil
	}
	c.Seed, c.Workers, c.Poll, c.Every = o.Seed, o.Workers, o.Poll, units.FromMicros(o.EveryUs)
	before := CPUSeconds()
	r, err := packet.Run(n, flows, c)
	if err != nil {
		return nil, refused(err)
	}
	x := report(n, flows, c, carried, r)
	if x.Seed = o.Seed; r.Stall != nil {
		x.Unfinished = unfinished(n, flows, c, r)
	}
	if o.Timing {
		s := CPUSeconds() - before
		x.CPUSeconds = &s
	}
	return x, nil
}

// unfinished returns the reason why flows did not end. A permanent storm holds the frames that wait for its
// link; without lost frames it is the only reason. With go-back-0 or sparse acknowledgements the size of a
// flow can be a reason too.
func unfinished(n *packet.Network, flows []packet.Flow, c *packet.Config, r *packet.Result) string {
	s, why := r.Stall, ""
	for _, f := range c.Faults {
		if !f.Storm || f.To > 0 {
			continue
		}
		from, to := n.Cables[f.Cable].A, n.Cables[f.Cable].B
		if f.Back {
			from, to = to, from
		}
		if why != "" {
			why += ", "
		}
		why += fmt.Sprintf("%d > %d", from, to)
	}
	if i := endless(flows, c); why == "" && i >= 0 && r.Flows[i].Begun() && !r.Flows[i].Done && !s.Stopped &&
		s.Failed == 0 {
		return fmt.Sprintf("%d flows did not end, the first is flow %d: with L2_BACK_TO_ZERO a flow of %d "+
			"bytes, no multiple of L2_CHUNK_SIZE, never ends, as in the simulator", s.Unfinished, s.First,
			flows[i].Bytes)
	}
	if i := unanswered(flows, c); why == "" && i >= 0 && r.Flows[i].Begun() && !r.Flows[i].Done &&
		!s.Stopped {
		return fmt.Sprintf("%d flows did not end, the first is flow %d: with L2_ACK_INTERVAL %d nothing "+
			"acknowledges the end of a flow of %d bytes, as in the simulator: it is shorter, and no "+
			"multiple of L2_CHUNK_SIZE",
			s.Unfinished, s.First, c.AckFrom, flows[i].Bytes)
	}
	if why == "" || len(s.Deadlock) > 0 || s.Paused[0] >= 0 || s.Stopped || s.Failed > 0 {
		return s.String()
	}
	why = fmt.Sprintf("%d flows did not end, the first is flow %d: a pause storm blocks %s", s.Unfinished,
		s.First, why)
	if r.Lost+r.Drops > 0 && c.Repair.Timeout == 0 {
		why += ", and no timeout retransmits lost frames"
	}
	return why
}

// endless returns the index of the first flow that no acknowledgement ends with go-back-0, because its size
// is no multiple of the retransmission unit; -1 if there is none.
func endless(flows []packet.Flow, c *packet.Config) int {
	return slices.IndexFunc(flows, func(f packet.Flow) bool {
		return c.Repair.BackTo > 0 && f.Bytes%c.Repair.BackTo != 0
	})
}

// unanswered returns the index of the first flow whose end is never acknowledged, because the flow is shorter
// than the acknowledgement interval and no multiple of the acknowledged chunk; -1 if there is none.
func unanswered(flows []packet.Flow, c *packet.Config) int {
	return slices.IndexFunc(flows, func(f packet.Flow) bool {
		return !c.Repair.Selective && c.Repair.Timeout == 0 && f.Bytes < c.AckFrom &&
			(c.AckChunk == 0 || f.Bytes%c.AckChunk != 0)
	})
}

// refused sets the kind of an error of the engine.
func refused(err error) error {
	var wrong *packet.InputError
	var other *uec.InputError
	var lacks *packet.UnsupportedError
	switch {
	case errors.As(err, &wrong), errors.As(err, &other):
		return fail.Input(err)
	case errors.As(err, &lacks):
		return fail.NotYet("the engine does not simulate it", "%v", err)
	}
	return err
}

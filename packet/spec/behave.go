package spec

import "github.com/simccl/simccl/units"

// Fault is a fault of a cable from one time to another, in both directions. A flapping cable has several.
type Fault struct {
	Cable    int
	From, To units.Time // To 0: until the end of the run
	Down     bool       // frames are lost on arrival
	Slow     float64    // remaining share of the rate; 0: all
	Loss     float64    // probability that a frame is lost on arrival
	// Storm: node B pauses its neighbour A permanently, in every priority.
	Storm bool
	Back  bool // the storm goes from A to B instead
	// Reroute: with Down, routes avoid the cable from then on, permanently.
	Reroute bool
}

func (f *Fault) check(n *Network, i int) error {
	switch {
	case f.Cable < 0 || f.Cable >= len(n.Cables):
		return Wrong("fault %d: cable %d: there are cables 0 to %d", i, f.Cable, len(n.Cables)-1)
	case f.From < 0 || f.To != 0 && f.To <= f.From || f.To > MaxTime:
		return Wrong("fault %d: from %v to %v: it must end after it begins", i, f.From, f.To)
	case !(f.Slow >= 0 && f.Slow <= 1) || !(f.Loss >= 0 && f.Loss <= 1):
		return Wrong("fault %d: a rate of %g and a loss of %g: write shares from 0 to 1", i, f.Slow, f.Loss)
	case f.Slow > 0 && f.Slow*float64(n.Cables[f.Cable].Rate) < 1e6:
		return Wrong("fault %d: %g of %d bit/s is below 1 Mb/s", i, f.Slow, n.Cables[f.Cable].Rate)
	}
	return nil
}

// Balance is how switches choose among paths of equal length.
type Balance uint8

const (
	Hashed Balance = iota // ECMP: by the hash of addresses and ports
	// each data frame takes the shortest queue (adaptive routing of InfiniBand and Spectrum)
	PerPacket
	PerFlow // each flowlet takes the shortest queue (dynamic load balancing of Broadcom's switches)
)

func (b Balance) String() string {
	if names := [...]string{"ecmp", "adaptive", "flowlet"}; int(b) < len(names) {
		return names[b]
	}
	return "unknown"
}

// Routing is how switches spread data frames; acknowledgements are always hashed. The zero value is ECMP.
type Routing struct {
	Balance Balance
	// Gap, with PerFlow, is the silence of a flow at a switch after which its next frame chooses a new port
	// (16 to 256 µs in Broadcom's switches).
	Gap units.Time
	// Quantum is the granularity of queue lengths in bytes: ports whose lengths fall into one quantum are
	// equal, and one of them is drawn. 0: each byte counts.
	Quantum int64
}

func (r *Routing) check(c *Config) error {
	switch {
	case r.Balance > PerFlow:
		return Wrong("routing %d: there are 0 to %d", r.Balance, PerFlow)
	case r.Gap < 0 || r.Quantum < 0:
		return Wrong("a gap of %v and a quantum of %d bytes: write 0 or more", r.Gap, r.Quantum)
	case r.Balance == PerPacket && (!c.Repair.Selective || c.Repair.Reorder == 0):
		return Wrong("frames that choose their paths one by one overtake each other: let receivers take " +
			"them out of order (Repair.Selective, Reorder)")
	}
	return nil
}

// Repair is how losses are repaired. The zero value is go-back-N without a timeout, as in ns-3's HPCC
// simulator.
type Repair struct {
	// Selective: receivers keep frames out of order and report them, senders retransmit only what is missing.
	// Otherwise senders go back to the first gap.
	Selective bool
	// Timeout is the time without progress after which unacknowledged frames are retransmitted; 0: never.
	Timeout units.Time
	// Retries is the number of timeouts in a row after which a flow fails; 0: never.
	Retries int32
	// Reorder, with Selective, is the number of frames by which a frame may be overtaken before it counts as
	// lost. Multipath needs it.
	Reorder uint32
	// NoSkip, for go-back-N without a timeout: a sender that goes back twice also retransmits frames that
	// were acknowledged in between, and a receiver asks for the first frame of a flow that has ended if later
	// frames arrive, as in ns-3. Without it senders skip acknowledged frames.
	NoSkip bool
	// BackTo, if not 0, makes both ends go back to multiples of this many bytes (go-back-0 of ns-3,
	// L2_BACK_TO_ZERO).
	BackTo int64
}

// Watchdog drops the frames of an egress queue that has been paused for too long (SONiC's pfcwd: detection
// 200 ms, restoration 200 ms, action drop).
type Watchdog struct {
	After   units.Time // length of the pause that triggers it; 0: no watchdog
	Restore units.Time // time without a pause after which the queue serves again
}

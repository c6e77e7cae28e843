package spec

import "github.com/simccl/simccl/units"

// Fault is what is wrong with a cable for a time, in both directions. A cable
// that flaps has several.
type Fault struct {
	Cable    int
	From, To units.Time // To 0: to the end
	Down     bool       // what arrives is lost
	Slow     float64    // share of the rate that is left; 0: all
	Loss     float64    // probability that a frame is lost on arrival
	// Storm: the node at B pauses its neighbour A all the time, in every priority.
	Storm bool
	Back  bool // Storm the other way: A pauses B
	// Reroute: with Down, routes avoid the cable from then on, for ever.
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

// Balance is how switches choose among equally short paths.
type Balance uint8

// Balances of load in switches.
const (
	Hashed Balance = iota // ECMP: by the hash of addresses and ports
	// each data frame to the shortest queue (adaptive routing of InfiniBand and Spectrum)
	PerPacket
	PerFlow // the same for each flowlet (dynamic load balancing of Broadcom's switches)
)

// String is the balance's name.
func (b Balance) String() string {
	if names := [...]string{"ecmp", "adaptive", "flowlet"}; int(b) < len(names) {
		return names[b]
	}
	return "unknown"
}

// Routing is how switches spread data frames. Acknowledgements take hashed paths.
// The zero value is ECMP.
type Routing struct {
	Balance Balance
	// Gap is how long a flow must have been silent at a switch for its next frame to
	// choose again, with PerFlow (16 to 256 us in Broadcom's switches).
	Gap units.Time
	// Quantum is the bytes of queue by which two ports must differ to count as different;
	// among the best one is drawn. 0: any byte counts.
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

// Repair is how senders find and fill gaps. The zero value is go-back-N without
// a timeout, as in the HPCC simulator.
type Repair struct {
	// Selective: receivers keep what comes out of order and report it, senders send
	// only the frames that are missing; otherwise they go back to the first of them.
	Selective bool
	// Timeout sends again what has not been acknowledged, once no acknowledgement
	// has helped for so long; 0: never.
	Timeout units.Time
	// Retries is after how many timeouts without progress a flow fails; 0: never.
	Retries int32
	// Reorder is by how many frames one may be overtaken before it counts as lost,
	// with Selective: paths of different lengths of queues need it.
	Reorder uint32
	// NoSkip: a sender that was sent back twice sends again also what is acknowledged in between, and a
	// receiver asks for the first frame of a flow that has ended when others still come, as in the HPCC
	// simulator. Without it a sender skips what is acknowledged. It counts with go-back-N without a timeout
	// only.
	NoSkip bool
	// BackTo, where set, makes go-back-N go back to multiples of so many bytes, at
	// both ends (go-back-0 of the HPCC simulator, L2_BACK_TO_ZERO).
	BackTo int64
}

// Watchdog drops what waits in an egress queue of a switch that has been paused
// for too long (SONiC's pfcwd: detection 200 ms, restoration 200 ms, action drop).
type Watchdog struct {
	After   units.Time // of a pause without an end; 0: no watchdog
	Restore units.Time // without a pause, after which the queue serves again
}

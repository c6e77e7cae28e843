package uec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/units"
)

// Network is a leaf-spine network of equal leaves, each joined to every spine; with Pods several of these,
// joined by cores:
//
//	cores    (three tiers only; core c is joined to spine c mod Spines of each pod)
//	spines   0 … Spines-1 of each pod
//	leaves   0 … Leaves-1, PerLeaf hosts each
type Network struct {
	Leaves, PerLeaf, Spines int   // Spines: of each pod
	HostRate, SpineRate     int64 // bit/s
	HostDelay, SpineDelay   units.Time
	// LeafLatency and SpineLatency are the switch's latency, added to each frame.
	LeafLatency, SpineLatency units.Time
	// Pods divide the leaves, Cores switches join them; both 0: two tiers.
	Pods, Cores            int
	CoreRate               int64
	CoreDelay, CoreLatency units.Time
}

// AllSpines returns the spines of all pods.
func (n *Network) AllSpines() int { return max(1, n.Pods) * n.Spines }

// Pod returns a leaf's pod.
func (n *Network) Pod(leaf int) int {
	if n.Pods == 0 {
		return 0
	}
	return leaf / (n.Leaves / n.Pods)
}

// Uplinks returns the number of cores above a spine.
func (n *Network) Uplinks() int { return n.Cores / n.Spines }

// Balance is how senders spread packets over paths (htsim's load balancing algorithms).
type Balance uint8

const (
	ECMP      Balance = iota // one path a flow
	Oblivious                // all paths in round robin
	REPS                     // recycle the paths of unmarked acknowledgements
	Bitmap                   // skip marked paths
	Mixed                    // REPS while paths are left to recycle, else Bitmap
)

func (b Balance) String() string {
	if names := balances(); int(b) < len(names) {
		return names[b]
	}
	return "unknown"
}

func balances() []string { return []string{"ecmp", "oblivious", "reps", "bitmap", "mixed"} }

// ParseBalance is the inverse of String. Error: *InputError that lists the names.
func ParseBalance(name string) (Balance, error) {
	if i := slices.Index(balances(), name); i >= 0 {
		return Balance(i), nil
	}
	return 0, wrong("%q is not a balance: write one of %s", name, strings.Join(balances(), ", "))
}

// Flow is a message from one host to another.
type Flow struct {
	Src, Dst int32
	Bytes    int64
	ID       uint32 // the number that switches hash
	Start    units.Time
	Deps     []int32 // flows whose last acknowledgement this flow waits for
	// 1-based index into Config.Pools: its end starts the next flow there; 0: none
	Pool int
}

// Config is the settings of senders and of the simulation; those of switches follow from the network.
type Config struct {
	Seed    uint64 // of all draws
	Balance Balance
	Paths   int // entropy values of a flow: a power of two
	MTU     int // bytes of a full data frame, with Header
	// Pools are lists of flows, each of which starts when a flow of that Pool ends.
	Pools [][]int32
	Poll  func() error
}

// htsim's sizes of frames in bytes.
const (
	Header  = 64
	control = 64 // acknowledgements, NACKs, trimmed frames
)

// FlowResult is the outcome of a Flow: its start, and its end if it is done.
type FlowResult struct {
	Start, End units.Time // End: arrival of the last acknowledgement, valid if Done
	Done       bool
}

// Result has what each flow and the network came to; sizes are bytes.
type Result struct {
	Flows                               []FlowResult
	PeakQueue                           int64
	PeakLink                            [2]int32 // nodes: hosts, then leaves, then spines
	Marks, Trims, Drops, Retransmitted  int64
	Timeouts                            int64
	NewPackets, Acks, Nacks, Windows    int64
	DataPacketHops                      int64
	BaseRTT                             units.Time
	BandwidthDelay, QueueBytes, MaxWind int64
}

// InputError reports an invalid network, flow or setting; Problem says what to change.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

func wrong(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// Hosts returns the number of hosts.
func (n *Network) Hosts() int { return n.Leaves * n.PerLeaf }

// mostLinks bounds the memory of a network.
const mostLinks = 1 << 21

// mostPorts is the most ports of a switch: each has two queues, numbered in 16 bits.
const mostPorts = 1 << 15

// mostQueue is the most bytes of a queue: peaks have 32 bits.
const mostQueue = 1<<31 - 1

// Check validates the network. Error: *InputError.
func (n *Network) Check() error {
	switch {
	case n.Leaves < 1 || n.PerLeaf < 1 || n.Spines < 1 || n.Leaves > 1<<15 || n.PerLeaf > 1<<15 ||
		n.Spines > 1<<15:
		return wrong("%d leaves of %d hosts and %d spines: write 1 to 32768 of each", n.Leaves, n.PerLeaf,
			n.Spines)
	case n.Pods < 0 || n.Pods > n.Leaves || n.Pods > 0 && n.Leaves%n.Pods != 0 ||
		(n.Pods > 0) != (n.Cores > 0) || n.Cores < 0 || n.Cores > 1<<15 || n.Cores%n.Spines != 0:
		return wrong("%d leaves in %d pods, %d cores above %d spines of a pod: pods divide leaves, and "+
			"cores are a multiple of the spines", n.Leaves, n.Pods, n.Cores, n.Spines)
	case n.Pods > 0 && (n.CoreRate < 1e6 || n.CoreRate > 1e14 || n.CoreDelay < units.Nanosecond ||
		n.CoreDelay > units.Second || n.CoreLatency < 0 || n.CoreLatency > units.Second):
		return wrong("links of cores of %d bit/s and %v, %v in each core: write 1 Mb/s to 100 Tb/s, 1 ns "+
			"to 1 s, 0 to 1 s", n.CoreRate, n.CoreDelay, n.CoreLatency)
	case n.Hosts()+n.Leaves*n.Spines+n.AllSpines()*n.Uplinks() > mostLinks:
		return wrong("%d hosts, %d leaves of %d spines, %d cores: these are more than %d links", n.Hosts(),
			n.Leaves, n.Spines, n.Cores, mostLinks)
	case n.PerLeaf+n.Spines > mostPorts || n.Leaves/max(1, n.Pods)+n.Uplinks() > mostPorts:
		return wrong("leaves of %d ports and spines of %d: write at most %d", n.PerLeaf+n.Spines,
			n.Leaves/max(1, n.Pods)+n.Uplinks(), mostPorts)
	case n.HostRate < 1e6 || n.SpineRate < 1e6 || n.HostRate > 1e14 || n.SpineRate > 1e14:
		return wrong("links of %d and %d bit/s: write 1 Mb/s to 100 Tb/s", n.HostRate, n.SpineRate)
	case n.HostDelay < units.Nanosecond || n.SpineDelay < units.Nanosecond || n.HostDelay > units.Second ||
		n.SpineDelay > units.Second:
		return wrong("links with delays of %v and %v: write 1 ns to 1 s", n.HostDelay, n.SpineDelay)
	case n.LeafLatency < 0 || n.SpineLatency < 0 || n.LeafLatency > units.Second ||
		n.SpineLatency > units.Second:
		return wrong("switches with latencies of %v and %v: write 0 to 1 s", n.LeafLatency, n.SpineLatency)
	}
	return nil
}

// Check validates a network, flows and settings without running them. Error: *InputError.
func Check(n *Network, flows []Flow, c *Config) error {
	if err := n.Check(); err != nil {
		return err
	}
	switch {
	case c.MTU <= Header || c.MTU > 1<<16-1:
		return wrong("frames of %d bytes: write %d to %d", c.MTU, Header+1, 1<<16-1)
	case n.room(c.MTU)*float64(c.MTU) > mostQueue:
		return wrong("a round trip of %v at %d bit/s: a queue has room for what is in flight then, and at "+
			"most %d bytes: write shorter delays or a lower rate", units.Time(n.roundTrip(c.MTU)), n.HostRate,
			mostQueue)
	case c.Paths < 1 || c.Paths > 1<<15 || c.Paths&(c.Paths-1) != 0:
		return wrong("%d paths: write a power of two up to 32768", c.Paths)
	case int(c.Balance) >= len(balances()):
		return wrong("balance %d: there are 0 to %d", c.Balance, len(balances())-1)
	}
	for _, p := range c.Pools {
		for _, f := range p {
			if f < 0 || int(f) >= len(flows) {
				return wrong("a pool with flow %d: there are flows 0 to %d", f, len(flows)-1)
			}
		}
	}
	for i := range flows {
		f := &flows[i]
		switch {
		case f.Pool < 0 || f.Pool > len(c.Pools):
			return wrong("flow %d: pool %d: there are 1 to %d", i, f.Pool, len(c.Pools))
		case f.Src < 0 || int(f.Src) >= n.Hosts() || f.Dst < 0 || int(f.Dst) >= n.Hosts():
			return wrong("flow %d: from host %d to %d: there are hosts 0 to %d", i, f.Src, f.Dst, n.Hosts()-1)
		case f.Src == f.Dst:
			return wrong("flow %d: host %d sends to itself", i, f.Src)
		case f.Bytes < 1 || f.Bytes > 1<<40:
			return wrong("flow %d: %d bytes: write 1 to %d", i, f.Bytes, int64(1)<<40)
		case (f.Bytes-1)/int64(c.MTU-Header) >= 1<<32-1:
			return wrong("flow %d: %d bytes are more than %d frames of %d bytes of payload: write fewer, "+
				"or a larger MTU", i, f.Bytes, 1<<32-1, c.MTU-Header)
		case f.Start < 0 || f.Start > 1e6*units.Second:
			return wrong("flow %d: starts at %v: write 0 to 10^6 s", i, f.Start)
		}
		for _, d := range f.Deps {
			if d < 0 || int(d) >= len(flows) || int(d) == i {
				return wrong("flow %d: waits for flow %d: there are flows 0 to %d, and none may wait for "+
					"itself", i, d, len(flows)-1)
			}
		}
	}
	return nil
}

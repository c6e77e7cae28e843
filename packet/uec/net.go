package uec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/units"
)

// Network is leaves of equally many hosts, each joined to every spine; or, with Pods,
// several such networks whose spines are joined by cores.
type Network struct {
	Leaves, PerLeaf, Spines int   // Spines of each pod
	HostRate, SpineRate     int64 // bit/s of a link
	HostDelay, SpineDelay   units.Time
	// LeafLatency and SpineLatency are what a switch adds to each frame.
	LeafLatency, SpineLatency units.Time
	// Pods is how many parts the leaves are divided into, and Cores how many switches
	// join them; 0: two tiers. Core c is joined to spine c modulo Spines of each pod.
	Pods, Cores            int
	CoreRate               int64
	CoreDelay, CoreLatency units.Time
}

// AllSpines is how many spines there are in all pods.
func (n *Network) AllSpines() int { return max(1, n.Pods) * n.Spines }

// Pod is the pod of a leaf.
func (n *Network) Pod(leaf int) int {
	if n.Pods == 0 {
		return 0
	}
	return leaf / (n.Leaves / n.Pods)
}

// Uplinks is how many cores a spine is joined to.
func (n *Network) Uplinks() int { return n.Cores / n.Spines }

// Balance is how senders spread packets over paths.
type Balance uint8

// Balances of load.
const (
	ECMP      Balance = iota // one path a flow
	Oblivious                // all paths in turn
	REPS                     // paths of unmarked acknowledgements again
	Bitmap                   // marked paths are skipped
	Mixed                    // REPS, else Bitmap
)

// String is the name of a balance.
func (b Balance) String() string {
	if names := balances(); int(b) < len(names) {
		return names[b]
	}
	return "unknown"
}

func balances() []string { return []string{"ecmp", "oblivious", "reps", "bitmap", "mixed"} }

// ParseBalance is the balance of a name.
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
	ID       uint32 // of the hash at switches
	Start    units.Time
	Deps     []int32 // flows whose last acknowledgement it waits for
	Pool     int     // of Config.Pools, from 1: its end starts the next flow there; 0: none
}

// Config is how hosts and switches behave.
type Config struct {
	Seed    uint64 // of draws
	Balance Balance
	Paths   int // entropies of a flow: a power of two
	MTU     int // bytes of a full data frame, Header of them not payload
	// Pools are flows that start one by one, in this order, each as a flow of that Pool
	// ends.
	Pools [][]int32
	Poll  func() error
}

// Sizes of frames in the peer, in bytes.
const (
	Header  = 64
	control = 64 // acknowledgements, NACKs and trimmed frames
)

// FlowResult is what became of a Flow.
type FlowResult struct {
	Start, End units.Time // End: the last acknowledgement at the sender, valid if Done
	Done       bool
}

// Result is what became of all.
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

// InputError is a network, flow or setting that cannot be.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

func wrong(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// Hosts is how many there are.
func (n *Network) Hosts() int { return n.Leaves * n.PerLeaf }

// mostLinks bounds the memory of a network.
const mostLinks = 1 << 21

// mostPorts is how many ports a switch has at most: each has two queues, which 16 bits number.
const mostPorts = 1 << 15

// mostQueue is how many bytes wait at a port at most; its deepest queue has 32 bits.
const mostQueue = 1<<31 - 1

// Check finds what is wrong with a network.
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

// Check finds what is wrong with a network, its flows and the settings.
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

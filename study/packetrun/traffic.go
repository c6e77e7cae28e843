package packetrun

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// Traffic replaces the flows of a configuration by generated ones.
type Traffic struct {
	// Kind is incast:N, permutation, alltoall, websearch or hadoop; empty: the configuration's flows.
	Kind  string `json:"traffic,omitempty"`
	Bytes int64  `json:"bytes"` // of a flow of the first three
	// Load, of the last two, is the share of a host's line that it is to send, in percent.
	Load   float64 `json:"load"`
	SpanUs float64 `json:"span"` // of the last two: for how long flows start
}

// Kinds lists the values of Traffic.Kind, for errors and help.
const Kinds = "incast:N, permutation, alltoall, websearch or hadoop"

// knot is a point of a distribution of flow sizes: the share of flows, in percent, that are not larger.
type knot struct{ bytes, percent float64 }

// Sizes of flows, as the HPCC simulator's generator has them (traffic_gen/WebSearch_distribution.txt and
// FbHdp_distribution.txt of commit 9f4be2a; linear between the points). websearch is after Alizadeh et al.,
// Data Center TCP, SIGCOMM 2010; hadoop after Roy et al., Inside the Social Network's (Datacenter) Network,
// SIGCOMM 2015.
var (
	websearch = []knot{{0, 0}, {10e3, 15}, {20e3, 20}, {30e3, 30}, {50e3, 40}, {80e3, 53}, {200e3, 60},
		{1e6, 70}, {2e6, 80}, {5e6, 90}, {10e6, 97}, {30e6, 100}}
	hadoop = []knot{{0, 0}, {100, 1}, {200, 2}, {300, 5}, {350, 15}, {400, 20}, {500, 30}, {600, 40},
		{700, 50}, {1e3, 60}, {2e3, 67}, {7e3, 70}, {30e3, 72}, {50e3, 82}, {80e3, 87}, {120e3, 90},
		{300e3, 95}, {1e6, 97.5}, {2e6, 99}, {10e6, 100}}
)

// mean returns the mean of a distribution of flow sizes, in bytes.
func mean(sizes []knot) (sum float64) {
	for i := 1; i < len(sizes); i++ {
		sum += (sizes[i].bytes + sizes[i-1].bytes) / 2 * (sizes[i].percent - sizes[i-1].percent) / 100
	}
	return sum
}

// drawn returns the flow size at a percentile of the distribution.
func drawn(sizes []knot, percent float64) int64 {
	for i := 1; i < len(sizes); i++ {
		if a, b := sizes[i-1], sizes[i]; percent <= b.percent {
			return max(1, int64(a.bytes+(b.bytes-a.bytes)*(percent-a.percent)/(b.percent-a.percent)))
		}
	}
	return int64(sizes[len(sizes)-1].bytes)
}

// mostFlows is the largest number of generated flows.
const mostFlows = 1 << 22

// Priority and destination port of generated flows; those of the HPCC simulator's generator.
const (
	trafficPriority = 3
	trafficPort     = 100
)

// generate returns random flows between the hosts of a network, the first of which starts at `first`.
func (t *Traffic) generate(n *packet.Network, first units.Time, seed uint64) ([]packet.Flow, error) {
	var hosts []int32
	rates := make([]int64, n.Nodes)
	for _, c := range n.Cables {
		rates[c.A], rates[c.B] = c.Rate, c.Rate
	}
	for v, is := range n.Switch {
		if !is && rates[v] > 0 {
			hosts = append(hosts, int32(v))
		}
	}
	if len(hosts) < 2 {
		return nil, fail.Usage("{Kind} %s: the network has %d hosts, and flows need two", t.Kind, len(hosts))
	}
	flow := func(src, dst int, bytes int64, at units.Time) packet.Flow {
		return packet.Flow{Src: hosts[src], Dst: hosts[dst], Bytes: bytes, Priority: trafficPriority,
			DstPort: trafficPort, Start: at}
	}
	r := rand.New(rand.NewPCG(seed, 0x7472616666696320))
	kind, number, _ := strings.Cut(t.Kind, ":")
	if (number != "") != (kind == "incast") {
		kind = ""
	}
	if fixed := kind == "incast" || kind == "permutation" || kind == "alltoall"; fixed && (t.Bytes < 1 ||
		t.Bytes > 1<<40) {
		return nil, fail.Usage("{Bytes} %d: write 1 to %d", t.Bytes, int64(1)<<40)
	}
	var flows []packet.Flow
	switch kind {
	case "incast":
		senders, err := strconv.Atoi(number)
		if err != nil || senders < 1 || senders >= len(hosts) {
			return nil, fail.Usage("{Kind} %s: the network has %d hosts: write incast:1 to incast:%d", t.Kind,
				len(hosts), len(hosts)-1)
		}
		for i := 1; i <= senders; i++ {
			flows = append(flows, flow(i, 0, t.Bytes, first))
		}
	case "permutation":
		to := cycle(r, len(hosts))
		for i := range hosts {
			flows = append(flows, flow(i, to[i], t.Bytes, first))
		}
	case "alltoall":
		if k := len(hosts); k*(k-1) > mostFlows {
			return nil, fail.Usage("{Kind} alltoall: %d hosts have more than %d pairs", k, mostFlows)
		}
		for step := 1; step < len(hosts); step++ {
			for i := range hosts {
				flows = append(flows, flow(i, (i+step)%len(hosts), t.Bytes, first))
			}
		}
	case "websearch", "hadoop":
		sizes := websearch
		if kind == "hadoop" {
			sizes = hadoop
		}
		return t.loaded(r, sizes, len(hosts), func(i int) int64 { return rates[hosts[i]] },
			func(src, dst int, bytes int64, at units.Time) packet.Flow {
				return flow(src, dst, bytes, first+at)
			})
	default:
		return nil, fail.Usage("{Kind} %q: write %s", t.Kind, Kinds)
	}
	return flows, nil
}

// cycle returns a permutation that is one cycle, drawn evenly, so that no host sends to itself (Sattolo).
func cycle(r *rand.Rand, n int) []int {
	to := make([]int, n)
	for i := range to {
		to[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := r.IntN(i)
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// loaded returns flows that each host starts at random (Poisson) to random others, as much as to load its
// line.
func (t *Traffic) loaded(r *rand.Rand, sizes []knot, hosts int, rate func(host int) int64,
	flow func(src, dst int, bytes int64, at units.Time) packet.Flow) ([]packet.Flow, error) {
	switch {
	case !(t.Load >= 0.01 && t.Load <= 100):
		return nil, fail.Usage("{Load} %g: write 0.01 to 100 (percent of each host's line)", t.Load)
	case !(t.SpanUs >= 1 && t.SpanUs <= 1e7):
		return nil, fail.Usage("{SpanUs} %g: write 1 to 1e7 us", t.SpanUs)
	}
	var flows []packet.Flow
	for i := range hosts {
		gap := mean(sizes) * 8 / (float64(rate(i)) * t.Load / 100) * 1e6 // us
		for at := 0.0; ; {
			if at -= gap * math.Log(1-r.Float64()); at >= t.SpanUs {
				break
			}
			dst := (i + 1 + r.IntN(hosts-1)) % hosts
			ns := units.Time(at*1e3) * units.Nanosecond
			flows = append(flows, flow(i, dst, drawn(sizes, 100*r.Float64()), ns))
			if len(flows) > mostFlows {
				return nil, fail.Usage("{SpanUs} %g with {Load} %g: more than %d flows: write less", t.SpanUs,
					t.Load, mostFlows)
			}
		}
	}
	if len(flows) == 0 {
		return nil, fail.Usage("{SpanUs} %g with {Load} %g: no flow starts within it: write more", t.SpanUs,
			t.Load)
	}
	slices.SortStableFunc(flows, func(a, b packet.Flow) int {
		return int(min(max(a.Start-b.Start, -1), 1))
	})
	return flows, nil
}

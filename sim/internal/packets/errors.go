package packets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// StallError is messages that never arrive.
type StallError struct {
	Stall  *packet.Stall
	Names  []string // of nodes of its cycle, or of the two of its lost resume
	Paused []string // ports that a storm of pauses holds
}

// GaveUp says that queue pairs ended with an error, which NCCL returns; else all wait
// for ever.
func (e *StallError) GaveUp() bool { return e.Stall.Failed > 0 }

func (e *StallError) Error() string {
	s := e.Stall
	var parts []string
	if len(s.Deadlock) > 0 {
		parts = append(parts, "deadlock, ports pause each other in a cycle: "+
			strings.Join(append(slices.Clone(e.Names), e.Names[0]), " > "))
	} else if len(e.Names) == 2 {
		parts = append(parts, fmt.Sprintf("%s is still paused: the XON from %s was lost", e.Names[0],
			e.Names[1]))
	}
	if len(e.Paused) > 0 {
		parts = append(parts, "a pause storm blocks "+strings.Join(e.Paused, ", "))
	}
	if s.Failed > 0 {
		parts = append(parts,
			fmt.Sprintf("%d queue pairs gave up after NCCL_IB_RETRY_CNT retries, and NCCL ends with "+
				"ncclRemoteError", s.Failed))
	}
	if len(parts) == 0 {
		parts = append(parts, "frames were lost that no timeout retransmits")
	}
	return fmt.Sprintf("network: %d queue pairs have messages that never arrive: %s", s.Unfinished,
		strings.Join(parts, "; "))
}

// names are those of the nodes that a stall is about.
func (m *Model) names(s *packet.Stall) []string {
	var out []string
	for _, n := range s.Deadlock {
		out = append(out, m.nodes[n].Name)
	}
	if len(out) == 0 && s.Paused[0] >= 0 {
		out = append(out, m.nodes[s.Paused[0]].Name, m.nodes[s.Paused[1]].Name)
	}
	return out
}

// BufferError is a switch whose memory is not more than what its ports keep for themselves.
type BufferError struct {
	Switch      string
	Ports       int
	Bytes, Kept int64
}

func (e *BufferError) Error() string {
	return fmt.Sprintf("packets: switch %s: buffer_kb %.10g, and its %d ports in use keep %.10g kB for "+
		"themselves (reserve_kb, headroom_delays of hop_us): write more than that, or smaller ones of these",
		e.Switch, float64(e.Bytes)/1e3, e.Ports, float64(e.Kept)/1e3)
}

// fits says whether the memory of each switch is more than what its ports keep for
// themselves, where that is pauses' to share.
func (m *Model) fits() error {
	b := &m.set.Buffer
	if b.Credits > 0 || b.Trim > 0 {
		return nil
	}
	kept, ports := make([]int64, m.net.Nodes), make([]int, m.net.Nodes)
	for i := range m.net.Cables {
		c := &m.net.Cables[i]
		for _, v := range [2]int32{c.A, c.B} {
			kept[v] += b.Reserve + b.Headroom + spec.Headroom(c.Rate, int64(c.Delay/units.Nanosecond),
				b.HeadroomDelays)
			ports[v]++
		}
	}
	for v, bytes := range kept {
		if m.net.Switch[v] && bytes >= b.Bytes {
			return &BufferError{Switch: m.nodes[v].Name, Ports: ports[v], Bytes: b.Bytes, Kept: bytes}
		}
	}
	return nil
}

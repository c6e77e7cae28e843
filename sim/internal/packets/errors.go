package packets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// StallError reports messages that never arrive, and the causes that are known.
type StallError struct {
	Stall  *packet.Stall
	Names  []string // nodes of the deadlock's cycle; else the paused node and the one whose XON was lost
	Paused []string // links that a pause storm blocks
}

// GaveUp reports whether queue pairs ran out of retries, which NCCL returns as an error; else the run hangs.
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

// names returns StallError.Names for a stall.
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

// BufferError reports a switch whose buffer is not larger than the reserve and headroom of its ports (Kept).
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

// fits returns a *BufferError for the first switch without a byte to share: reserve and headroom of its ports
// take the whole buffer. Credits and trimming have neither.
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

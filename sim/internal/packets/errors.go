package packets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/sim/wire/packet"
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
		parts = append(parts, "deadlock, ports pause each other in a cycle: "+strings.Join(append(slices.Clone(e.Names), e.Names[0]), " > "))
	} else if len(e.Names) == 2 {
		parts = append(parts, fmt.Sprintf("%s is paused, and the frame by which %s resumed it was lost", e.Names[0], e.Names[1]))
	}
	if len(e.Paused) > 0 {
		parts = append(parts, "a storm of pauses holds "+strings.Join(e.Paused, ", "))
	}
	if s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d queue pairs gave up after NCCL_IB_RETRY_CNT retries, and NCCL ends with ncclRemoteError", s.Failed))
	}
	if len(parts) == 0 {
		parts = append(parts, "frames were lost that no timer sends again")
	}
	return fmt.Sprintf("network: %d queue pairs have messages that never arrive: %s", s.Unfinished, strings.Join(parts, "; "))
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

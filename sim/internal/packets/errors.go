package packets

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/sim/wire/packet"
)

// StallError is messages that never arrive.
type StallError struct {
	Stall *packet.Stall
	Names []string // of nodes of its cycle, or of the two of its lost resume
}

func (e *StallError) Error() string {
	s := e.Stall
	head := fmt.Sprintf("network: %d queue pairs have messages that never arrive", s.Unfinished)
	switch {
	case len(s.Deadlock) > 0:
		return fmt.Sprintf("%s: deadlock, ports pause each other in a cycle: %s", head, strings.Join(append(e.Names, e.Names[0]), " > "))
	case len(e.Names) == 2:
		return fmt.Sprintf("%s: %s is paused, and the frame by which %s resumed it was lost", head, e.Names[0], e.Names[1])
	case s.Failed > 0:
		return fmt.Sprintf("%s: %d of them gave up after NCCL_IB_RETRY_CNT retries; NCCL ends with ncclRemoteError", head, s.Failed)
	}
	return head
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

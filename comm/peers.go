package comm

import "fmt"

// PeerWarning warns of nodes that disagree on the channels of send/recv, ""
// where all agree.
func (c *Comm) PeerWarning() string {
	what, least := c.PeersDisagree()
	if what == "" {
		return ""
	}
	return fmt.Sprintf("nodes disagree on the channels of send/recv to one peer (%s): NCCL %s takes the "+
		"minimum over each node's own GPUs and does not exchange it (graph/paths.cc:861, fixed in 2.29), "+
		"so sendrecv, alltoall, gather and scatter between them can hang; NCCL_MAX_P2P_NCHANNELS=%d makes "+
		"them agree",
		what, c.Params.Rules.Version(), least)
}

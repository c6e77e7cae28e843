package comm

import (
	"fmt"

	"github.com/simccl/simccl/rules"
)

// PeerWarning warns of nodes that disagree on the number of channels of send/recv; "" if all agree.
func (c *Comm) PeerWarning() string {
	what, least := c.PeersDisagree()
	if what == "" {
		return ""
	}
	where := "fixed in 2.29"
	if s := c.Params.Rules.Cite(rules.AtPeerMinimum); s != "" {
		where = s + ", " + where
	}
	return fmt.Sprintf("nodes disagree on the channels of send/recv to one peer (%s): NCCL %s takes the "+
		"minimum over each node's own GPUs and does not exchange it (%s), "+
		"so sendrecv, alltoall, gather and scatter between them can hang; NCCL_MAX_P2P_NCHANNELS=%d makes "+
		"them agree",
		what, c.Params.Rules.Version(), where, least)
}

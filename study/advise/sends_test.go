package advise

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/scenario"
)

// TestSettingsOfSends: other numbers of channels than there are, by the variable that bounds them from the
// right side; what is of several nodes is tried there alone.
func TestSettingsOfSends(t *testing.T) {
	names := func(channels, nodes int) string {
		var b strings.Builder
		for _, s := range sends(&scenario.Site{Comm: &comm.Comm{Layout: &connect.Layout{P2PChannels: channels,
			NNodes: nodes}}}) {
			for _, e := range s.Env {
				fmt.Fprintf(&b, "%s=%s ", strings.TrimPrefix(e[0], "NCCL_"), e[1])
			}
		}
		return strings.TrimSpace(b.String())
	}
	const chunks = "P2P_NVL_CHUNKSIZE=131072 P2P_PCI_CHUNKSIZE=131072 P2P_NVL_CHUNKSIZE=262144 " +
		"P2P_PCI_CHUNKSIZE=262144 P2P_NVL_CHUNKSIZE=1048576 P2P_PCI_CHUNKSIZE=1048576 " +
		"P2P_NVL_CHUNKSIZE=2097152 P2P_PCI_CHUNKSIZE=2097152 P2P_LL_THRESHOLD=0 P2P_LL_THRESHOLD=65536"
	const nets = " NCHANNELS_PER_NET_PEER=1 NCHANNELS_PER_NET_PEER=2 NCHANNELS_PER_NET_PEER=4 " +
		"NCHANNELS_PER_NET_PEER=8 P2P_NET_CHUNKSIZE=65536 P2P_NET_CHUNKSIZE=262144 " +
		"P2P_NET_CHUNKSIZE=524288 P2P_NET_CHUNKSIZE=1048576 P2P_PXN_LEVEL=0 P2P_PXN_LEVEL=1"
	for _, c := range []struct {
		channels, nodes int
		want            string
	}{
		{8, 1, "MAX_P2P_NCHANNELS=1 MAX_P2P_NCHANNELS=2 MAX_P2P_NCHANNELS=4 MIN_P2P_NCHANNELS=16 " +
			"MIN_P2P_NCHANNELS=32 " + chunks},
		{32, 2, "MAX_P2P_NCHANNELS=1 MAX_P2P_NCHANNELS=2 MAX_P2P_NCHANNELS=4 MAX_P2P_NCHANNELS=8 " +
			"MAX_P2P_NCHANNELS=16 " + chunks + nets},
		{1, 1, "MIN_P2P_NCHANNELS=2 MIN_P2P_NCHANNELS=4 MIN_P2P_NCHANNELS=8 MIN_P2P_NCHANNELS=16 " +
			"MIN_P2P_NCHANNELS=32 " + chunks},
	} {
		if got := names(c.channels, c.nodes); got != c.want {
			t.Errorf("%d channels, %d nodes: %s\nwant %s", c.channels, c.nodes, got, c.want)
		}
	}
}

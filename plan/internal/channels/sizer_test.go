package channels_test

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// TestSizersNeedWhatTransfersUse: a power of two of channels with no more for a peer than there are, a chunk,
// LL buffers of eight slots with a line of 16 bytes each, and the ranks of every node.
func TestSizersNeedWhatTransfersUse(t *testing.T) {
	few := func(all, each int) func(*connect.Layout) {
		return func(c *connect.Layout) { c.P2PChannels, c.P2PChannelsPerPeer = all, each }
	}
	for name, c := range map[string]struct {
		set func(*connect.Layout)
		ok  bool
	}{
		"as drawn":                    {func(*connect.Layout) {}, true},
		"as many for a peer":          {few(4, 4), true},
		"one channel":                 {few(1, 1), true},
		"no channel":                  {func(c *connect.Layout) { c.P2PChannels = 0 }, false},
		"six channels":                {func(c *connect.Layout) { c.P2PChannels = 6 }, false},
		"none for a peer":             {func(c *connect.Layout) { c.P2PChannelsPerPeer = 0 }, false},
		"more for a peer than at all": {few(2, 4), false},
		"a chunk of a byte":           {func(c *connect.Layout) { c.P2PChunkSize = 1 }, true},
		"no chunk":                    {func(c *connect.Layout) { c.P2PChunkSize = 0 }, false},
		"LL of 128 bytes":             {func(c *connect.Layout) { c.BuffSizes[coll.LL] = 128 }, true},
		"LL of 127 bytes":             {func(c *connect.Layout) { c.BuffSizes[coll.LL] = 127 }, false},
		"a node without ranks":        {func(c *connect.Layout) { c.NodeRanks = c.NodeRanks[:1] }, false},
	} {
		l := draw.Plain(2, 2, 8)
		l.MaxLocalRanks = 2
		c.set(l)
		_, err := channels.NewSizer(l, plan.Params{}, "send")
		bad := (*plan.RequestError)(nil)
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &bad) || bad.Field != "Comm") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

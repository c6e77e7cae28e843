package build

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// unevenComm has nodes of the given sizes, for send/recv only.
func unevenComm(sizes []int, channels int) *connect.Layout {
	c := &connect.Layout{Rules: rules.Default(), NNodes: len(sizes), P2PChannels: channels,
		P2PChannelsPerPeer: 1, P2PChunkSize: 131072,
		BuffSizes: [3]units.Bytes{524288, 4915200, 4194304}}
	for node, k := range sizes {
		var ranks []int32
		for local := range k {
			ranks = append(ranks, int32(c.NRanks))
			c.NodeOf, c.LocalRank = append(c.NodeOf, int32(node)), append(c.LocalRank, int32(local))
			c.NRanks++
		}
		c.NodeRanks = append(c.NodeRanks, ranks)
	}
	return c
}

// TestSendRecvOrderIsNCCLs compares, for all ranks and rounds, whom they send
// to and receive from and on which channel they begin, with ncclP2pSchedule
// (init.cc:768) and ncclP2pChannelBaseForRound (channel.h:19) run on a host:
// the digests are of lines "rank round to from channel".
func TestSendRecvOrderIsNCCLs(t *testing.T) {
	for _, tc := range []struct {
		sizes           []int
		group, channels int
		digest          uint64
	}{
		{[]int{8}, 8, 16, 0xb64c025cdca4658d},
		{[]int{3}, 8, 32, 0x366c714020773a84},
		{[]int{72}, 8, 32, 0xaeaa4c1ed36b8d75},
		{[]int{8, 8}, 8, 16, 0xc4eb193863bec29},
		{[]int{8, 8, 8}, 8, 2, 0x43a341ee046112d1},
		{[]int{4, 4, 4, 4, 4}, 8, 8, 0x8d59ce48454cc411},
		{[]int{16, 16, 16}, 8, 32, 0xc1ee4f1e17f4bd9},
		{[]int{8, 4, 6}, 8, 16, 0x43445b1a23d81b17},
		{[]int{1, 1, 1, 1, 1, 1, 1}, 8, 1, 0xd12bd0965f13adf7},
		{[]int{6, 6}, 4, 4, 0x4d8d8d5064a2ead1},
		{[]int{72, 72}, 8, 32, 0xd6c996a8fc2b5f41},
	} {
		c := unevenComm(tc.sizes, tc.channels)
		r := plan.Request{Func: coll.AllToAll, Count: 1,
			Params: plan.Params{P2PGroupSize: units.Some(int64(tc.group))}}
		p, err := Plan(c, r)
		if err != nil {
			t.Fatal(err)
		}
		h, s := fnv.New64a(), channels.NewRounds(c, r.Params)
		for rank := range int32(c.NRanks) {
			for k := range c.NRanks {
				to, from := s.Peers(rank, k)
				fmt.Fprintln(h, rank, k, to, from, s.ChannelBase(k))
				if back := s.Of(rank, to); back != k {
					t.Fatalf("%v: rank %d sends to %d in round %d, found in %d", tc.sizes, rank, to, k, back)
				}
			}
		}
		if h.Sum64() != tc.digest {
			t.Errorf("nodes of %v, groups of %d, %d channels: digest %#x, want %#x", tc.sizes, tc.group,
				tc.channels, h.Sum64(), tc.digest)
		}
		if err := check.Plan(p); err != nil {
			t.Error(err)
		}
	}
}

// TestTransfersDouble: on four GPUs of an NVSwitch node with 32 channels a
// transfer takes 8 channels up to 128 MiB and twice as many beyond
// (enqueue.cc:890-899), the jump that measurements show there; up to 512 KiB
// (32 times 16 KiB) it uses LL.
func TestTransfersDouble(t *testing.T) {
	c := draw.Plain(4, 1, 32)
	c.P2PChunkSize = 512 << 10
	for _, tc := range []struct {
		bytes    int64
		channels int
		proto    coll.Protocol
	}{
		{0, 1, coll.LL}, {1, 1, coll.LL}, {64 << 10, 8, coll.LL}, {512 << 10, 8, coll.LL},
		{512<<10 + 1, 8, coll.Simple},
		{128 << 20, 8, coll.Simple}, {128<<20 + 1, 16, coll.Simple}, {256 << 20, 16, coll.Simple},
		{1 << 30, 32, coll.Simple},
	} {
		p, err := Plan(c, plan.Request{Func: coll.SendRecv, Count: tc.bytes, Type: coll.Int8})
		if err != nil {
			t.Fatal(err)
		}
		send, recv := 0, 0
		for _, pr := range p.Programs(1) {
			switch {
			case pr.Proto != tc.proto:
				t.Errorf("%d bytes go by %v, want %v", tc.bytes, pr.Proto, tc.proto)
			case pr.Role == plan.RoleSend:
				send++
			default:
				recv++
			}
		}
		if send != tc.channels || recv != tc.channels {
			t.Errorf("%d bytes take %d and %d channels, want %d", tc.bytes, send, recv, tc.channels)
		}
	}
}

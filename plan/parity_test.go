package plan

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// TestPATIsNCCLs compares every piece that PAT moves with what NCCL 2.28.9's
// own PatRSAlgorithm and PatAGAlgorithm (include/collectives.h) say when run on
// a host: testdata/pat.txt holds, for the middle rank, the number of pieces and
// the FNV-1a digest of their lines.
func TestPATIsNCCLs(t *testing.T) {
	table, err := os.ReadFile("testdata/pat.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range strings.Split(strings.TrimSpace(string(table)), "\n") {
		var name string
		var n int
		var count int64
		if _, err := fmt.Sscan(want, &name, &n, &count); err != nil {
			t.Fatal(err)
		}
		f, err := coll.ParseFunc(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Build(plain(1, n, 1), Request{Func: f, Algo: coll.PAT, Proto: coll.Simple, Count: count, Type: coll.Float32, Channels: 1, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		lines := patLines(p, int32(n/2))
		fmt.Fprint(h, lines)
		if got := fmt.Sprintf("%s %d %d %d %016x", name, n, count, strings.Count(lines, "\n"), h.Sum64()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// patLines prints the pieces of a rank: distances received and sent at,
// offsets, steps ahead, whether each is posted, size, and places in memory.
func patLines(p *Plan, rank int32) string {
	var b strings.Builder
	s := p.Cursor(rank, 0, 0).pat
	scatter := p.kind == patReduceScatter
	for !s.done {
		var st patStep
		if scatter {
			s.scatterStep(&st)
		} else {
			s.gatherStep(&st)
		}
		if st.recvDim < 0 {
			st.recvOff, st.postRecv = -1, false
		}
		if st.sendDim < 0 {
			st.sendOff, st.postSend = -1, false
		}
		switch {
		case scatter && st.sendDim < 0:
			st.ahead = 0
		case scatter:
			st.out = 0
		case st.recvDim < 0:
			st.ahead = 0
		default:
			st.inp = 0
		}
		if !st.skip {
			fmt.Fprintln(&b, st.recvDim, st.sendDim, st.recvOff, st.sendOff, st.ahead, bit(st.postRecv), bit(st.postSend), s.nelem, st.inp, st.out)
		}
		if scatter {
			s.advanceScatter()
		} else {
			s.advanceGather()
		}
	}
	return b.String()
}

// unevenComm has nodes of the given sizes, for send/recv only.
func unevenComm(sizes []int, channels int) *connect.Comm {
	c := &connect.Comm{NNodes: len(sizes), P2PChannels: channels, P2PChannelsPerPeer: 1, P2PChunkSize: 131072,
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
		r := Request{Func: coll.AllToAll, Count: 1, Params: Params{P2PGroupSize: units.Some(int64(tc.group))}}
		p, err := Build(c, r)
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		for rank := range int32(c.NRanks) {
			for k := range c.NRanks {
				to, from := p.p2p.partners(c, rank, k)
				fmt.Fprintln(h, rank, k, to, from, p.p2p.channelBase(c, k))
				if back := p.p2p.roundOf(c, rank, to); back != k {
					t.Fatalf("%v: rank %d sends to %d in round %d, found in %d", tc.sizes, rank, to, k, back)
				}
			}
		}
		if h.Sum64() != tc.digest {
			t.Errorf("nodes of %v, groups of %d, %d channels: digest %#x, want %#x", tc.sizes, tc.group, tc.channels, h.Sum64(), tc.digest)
		}
		if err := Check(p); err != nil {
			t.Error(err)
		}
	}
}

// TestTransfersDouble: on four GPUs of an NVSwitch node with 32 channels a
// transfer takes 8 channels up to 128 MiB and twice as many beyond
// (enqueue.cc:890-899), the jump that measurements show there; up to 512 KiB
// (32 times 16 KiB) it uses LL.
func TestTransfersDouble(t *testing.T) {
	c := plain(4, 1, 32)
	c.P2PChunkSize = 512 << 10
	for _, tc := range []struct {
		bytes    int64
		channels int
		proto    coll.Protocol
	}{
		{0, 1, coll.LL}, {1, 1, coll.LL}, {64 << 10, 8, coll.LL}, {512 << 10, 8, coll.LL}, {512<<10 + 1, 8, coll.Simple},
		{128 << 20, 8, coll.Simple}, {128<<20 + 1, 16, coll.Simple}, {256 << 20, 16, coll.Simple}, {1 << 30, 32, coll.Simple},
	} {
		p, err := Build(c, Request{Func: coll.SendRecv, Count: tc.bytes, Type: coll.Int8})
		if err != nil {
			t.Fatal(err)
		}
		send, recv := 0, 0
		for _, pr := range p.Programs(1) {
			switch {
			case pr.Proto != tc.proto:
				t.Errorf("%d bytes go by %v, want %v", tc.bytes, pr.Proto, tc.proto)
			case pr.Role == RoleSend:
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

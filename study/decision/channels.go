package decision

import (
	"strconv"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Channels is the channels that all ranks agree on, with the neighbours of each rank.
type Channels struct {
	NChannels           int             `json:"nChannels"`
	CollChannels        int             `json:"collChannels"`
	NVLSChannels        int             `json:"nvlsChannels"`
	NVLSChunkSize       units.Bytes     `json:"nvlsChunkSize"`
	P2PNChannels        int             `json:"p2pnChannels"`
	P2PNChannelsPerPeer int             `json:"p2pnChannelsPerPeer"`
	P2PChunkSize        units.Bytes     `json:"p2pChunkSize"`
	NNodes              int             `json:"nNodes"`
	IsAllNVLink         Flag            `json:"isAllNvlink"`
	CPUArch             int             `json:"cpuArch"`
	CPUVendor           int             `json:"cpuVendor"`
	MaxTreePattern      int             `json:"maxTreePattern"`
	BuffSizes           [3]units.Bytes  `json:"buffSizes"`
	RingOrder           rankLists       `json:"ringOrder"`
	Consistent          Flag            `json:"consistent"`
	Ranks               rankChannelList `json:"ranks"`
}

// rankLists prints lists of ranks; written by hand because a large
// communicator has millions of them.
type rankLists [][]int32

// MarshalJSON writes a list of lists of ranks.
func (l rankLists) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, list := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInts(b, list)
	}
	return append(b, ']'), nil
}

func appendInts(b []byte, list []int32) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, ']')
}

// rankChannelList prints each rank's ring and tree neighbours by channel:
// [previous, next, up, down 0, 1, 2], and its NVLS neighbours where there are.
type rankChannelList struct{ c *comm.Comm }

// MarshalJSON writes one object per rank.
func (l rankChannelList) MarshalJSON() ([]byte, error) {
	c := l.c
	b := make([]byte, 0, 64*c.NRanks*max(len(c.Channels), 1))
	b = append(b, '[')
	for r := range c.NRanks {
		if r > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"rank":`...)
		b = strconv.AppendInt(b, int64(r), 10)
		b = append(b, `,"node":`...)
		b = strconv.AppendInt(b, int64(c.NodeOf[r]), 10)
		b = append(b, `,"nChannels":`...)
		b = strconv.AppendInt(b, int64(len(c.Channels)), 10)
		b = append(b, `,"ch":[`...)
		for i := range c.Channels {
			if i > 0 {
				b = append(b, ',')
			}
			ring, tree := c.Channels[i].Ring[r], c.Channels[i].Tree[r]
			b = appendInts(b, []int32{ring.Prev, ring.Next, tree.Up, tree.Down[0], tree.Down[1],
				tree.Down[2]})
		}
		b = append(b, ']')
		if len(c.NVLS) > 0 {
			b = appendNVLS(b, c, r)
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// appendNVLS prints a rank's NVLS neighbours with NCCL's numbers: rank NRanks+1+h
// is the switch group of head h (connect.cc:253).
func appendNVLS(b []byte, c *comm.Comm, r int) []byte {
	group := int32(c.NRanks) + 1
	up := make([]int32, len(c.NVLSHeads))
	for h := range up {
		up[h] = group + int32(h)
	}
	b = append(b, `,"nvls":[`...)
	for i := range c.NVLSCount[r] {
		v := &c.NVLS[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"headRank":`...)
		b = strconv.AppendInt(b, int64(v.HeadIndex[r]), 10)
		b = append(b, `,"nHeads":`...)
		b = strconv.AppendInt(b, int64(len(c.NVLSHeads)), 10)
		b = append(b, `,"up":`...)
		b = appendInts(b, up)
		b = append(b, `,"down":`...)
		b = strconv.AppendInt(b, int64(group+v.HeadIndex[r]), 10)
		b = append(b, `,"treeUp":`...)
		b = strconv.AppendInt(b, int64(v.TreeUp[r]), 10)
		b = append(b, `,"treeDown":`...)
		b = append(appendInts(b, v.TreeDown[r][:]), '}')
	}
	return append(b, ']')
}

func channelsOf(c *comm.Comm) Channels {
	order := make(rankLists, len(c.Channels))
	for i := range order {
		order[i] = c.Channels[i].Order
	}
	all, perPeer := c.P2PChannels, c.P2PChannelsPerPeer
	if c.Params.Rules.Library == rules.RCCL {
		all, perPeer = c.PeersOfExpl(&c.Params.Connect)
	}
	return Channels{NChannels: c.NChannels, CollChannels: c.CollChannels, NVLSChannels: c.NVLSChannels,
		NVLSChunkSize: c.NVLSChunkSize,
		P2PNChannels:  all, P2PNChannelsPerPeer: perPeer, P2PChunkSize: c.P2PChunkSize,
		NNodes:      c.NNodes,
		IsAllNVLink: Flag(c.IsAllNVLink), CPUArch: int(c.CPUArch), CPUVendor: int(c.CPUVendor),
		MaxTreePattern: int(c.TreePattern),
		BuffSizes:      c.BuffSizes, RingOrder: order, Consistent: true, Ranks: rankChannelList{c}}
}

// Tuning is the cost model: microseconds and GB/s by [func][algo][proto].
type Tuning struct {
	Algos            []string     `json:"algos"`
	Protos           []string     `json:"protos"`
	Funcs            []string     `json:"funcs"`
	Latencies        [5][7][3]Num `json:"latencies"`
	Bandwidths       [5][7][3]Num `json:"bandwidths"`
	ThreadThresholds [7][3]int64  `json:"threadThresholds"`
	MaxThreads       [7][3]int    `json:"maxThreads"`
}

func cellsOf(c *tuning.Cells) (out [5][7][3]Num) {
	for f := range c {
		for a := range c[f] {
			for p, v := range c[f][a] {
				out[f][a][p] = Num(v)
			}
		}
	}
	return out
}

func tuningOf(m *tuning.Model) Tuning {
	return Tuning{Algos: words(algorithms), Protos: words(protocols), Funcs: words(funcs),
		Latencies:  cellsOf(&m.Latency),
		Bandwidths: cellsOf(&m.Bandwidth), ThreadThresholds: m.ThreadThreshold, MaxThreads: m.MaxThreads}
}

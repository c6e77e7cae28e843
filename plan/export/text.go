package export

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

const textMagic = "simccl-plan 1"

var routeNames = [...]string{connect.RingRoute: "ring", connect.TreeRoute: "tree", connect.P2PRoute: "p2p",
	connect.NVLSRoute: "nvls", connect.NVLSTreeRoute: "nvlstree",
	connect.CollNetRoute: "collnet", connect.CollNetDirectRoute: "direct", connect.CollNetChainRoute: "chain"}

var transportNames = [...]string{connect.P2P: "P2P", connect.SHM: "SHM", connect.NET: "NET"}

// WriteText writes the plan as text, with every op of every rank: one thing a
// line, words separated by single spaces:
//
//	simccl-plan 1
//	ranks 2 nodes 1 buffers 524288 4915200 4194304
//	op all_reduce count 1024 type float redop sum root 0 in-place 0 algo Ring …
//	conn 0 0 > 1 channel 0 ring P2P
//	program 0 channel 0 group 0 phase 0 ring Simple threads 544 workers 512 slices 2 steps 2
//	send 2048 in+2048 > 0 chunk 1 step 0
//	recv+reduce+copy+send+post 2048 in+0 out+0 < 1 > 0 chunk 0 step 4
//
// Connections are numbered from 0 in order; programs are in order of rank,
// channel and group, each followed by its ops. A network connection has its
// route behind it: NET src-net dst-net src-proxy dst-proxy src-gdr dst-gdr.
// PAT and CollNet ops may end in recv-at OFFSET AHEAD and send-at OFFSET AHEAD.
//
// Groups of the network that reduces come before the connections, which name
// the network "net" and their group after the word collnet:
//
//	net 0 ranks 0,8 channels 0,1 chunk 32768 part 0 of 2
//	conn 4 8 > net channel 1 collnet 0 NET 0 -1 8 -1 1 0
func WriteText(w io.Writer, p *plan.Plan) error {
	if err := p.Distinct(); err != nil {
		return err
	}
	l := List(p)
	b := bufio.NewWriterSize(w, 1<<16)
	r := &p.Req
	fmt.Fprintln(b, textMagic)
	fmt.Fprintf(b, "ranks %d nodes %d buffers %d %d %d\n", p.Comm.NRanks, p.Comm.NNodes,
		p.Comm.BuffSizes[0], p.Comm.BuffSizes[1], p.Comm.BuffSizes[2])
	fmt.Fprintf(b,
		"op %s count %d type %s redop %s root %d in-place %d algo %v proto %v channels %d warps %d\n",
		r.Func.TestName(), r.Count, r.Type.TestName(), r.Op.TestName(), r.Root, bit(r.InPlace), r.Algo,
		r.Proto, r.Channels, r.Warps)
	for i := range l.NetGroups {
		writeNet(b, i, &l.NetGroups[i])
	}
	for i := range l.Conns {
		c := &l.Conns[i]
		fmt.Fprintf(b, "conn %d %s > %s channel %d %s", c.ID, peerName(c.Src), peerName(c.Dst), c.Channel,
			routeNames[c.Kind])
		if c.Kind == connect.CollNetRoute {
			fmt.Fprintf(b, " %d", c.NetGroup)
		}
		fmt.Fprintf(b, " %s", transportNames[c.Route.Transport])
		if t := &c.Route; t.Transport == connect.NET {
			fmt.Fprintf(b, " %d %d %d %d %d %d", t.SrcNet, t.DstNet, t.SrcProxy, t.DstProxy, bit(t.SrcGDR),
				bit(t.DstGDR))
		}
		fmt.Fprintln(b)
	}
	for i := range l.Programs {
		pr := &l.Programs[i]
		fmt.Fprintf(b,
			"program %d channel %d group %d phase %d %v %v threads %d workers %d slices %d steps %d\n",
			pr.Rank, pr.Channel, pr.Group, pr.Phase, pr.Role, pr.Proto, pr.Threads, pr.Workers, pr.Slices,
			pr.SliceSteps)
		for k := range pr.Ops {
			writeOp(b, &pr.Ops[k])
		}
	}
	return b.Flush()
}

// peerName returns a rank's number, or the word for the network.
func peerName(rank int32) string {
	if rank == plan.Network {
		return networkName
	}
	return strconv.Itoa(int(rank))
}

const networkName = "net"

func writeNet(b *bufio.Writer, i int, g *plan.NetGroup) {
	fmt.Fprintf(b, "net %d ranks ", i)
	writeList(b, g.Ranks)
	fmt.Fprint(b, " channels ")
	writeList(b, g.Channels)
	fmt.Fprintf(b, " chunk %d part %d of %d\n", g.Chunk, g.First, g.Total)
}

func writeList(b *bufio.Writer, list []int32) {
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(v)))
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func writeOp(b *bufio.Writer, op *plan.Op) {
	fmt.Fprintf(b, "%v %d", op.Do, op.Bytes)
	for _, r := range []plan.Ref{op.Src, op.Dst} {
		if r.Buf != plan.NoBuffer {
			fmt.Fprintf(b, " %v", r)
		}
	}
	writeIDs(b, "<", op.From)
	writeIDs(b, ">", op.To)
	fmt.Fprintf(b, " chunk %d step %d", op.Chunk, op.Step)
	if op.RecvOff != 0 || op.RecvAhead != 0 {
		fmt.Fprintf(b, " recv-at %d %d", op.RecvOff, op.RecvAhead)
	}
	if op.SendOff != 0 || op.SendAhead != 0 {
		fmt.Fprintf(b, " send-at %d %d", op.SendOff, op.SendAhead)
	}
	fmt.Fprintln(b)
}

func writeIDs(b *bufio.Writer, mark string, ids []int32) {
	if len(ids) > 0 {
		fmt.Fprintf(b, " %s ", mark)
		writeList(b, ids)
	}
}

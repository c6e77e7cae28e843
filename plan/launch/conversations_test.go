package launch_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// TestConversations: calls in, kernels out.
//
//	ranks N [nodes=N] [channels=N] [release=V]    a communicator, N ranks a node
//	group [graph|asked|windows|count] [args=BYTES] [fifo=BYTES] the calls below; asked: and what is chosen
//	                                for; windows: GPUs of sm_90 with NVLS have symmetric kernels; count: how
//	                                much a kernel has
//
// A call is OP SIZE [TYPE] [R] [root=R] [window|sendwindow] [warps=N] [by ALGO PROTO CHANNELS], send RANK
// PEER SIZE or recv RANK PEER SIZE [in place]; sizes are of NCCL's count, N* before a call is that many, and
// a rank all is each in turn. Without by it is Ring Simple on all channels, and calls of one operation take
// the first's. A kernel says its threads; of each collective its channels and the elements of the first, the
// middle and the last of them; of each rank what it sends and takes by round, with the batches of the parts.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		var c *connect.Layout
		return func(t *testing.T, d *datadriven.TestData) string {
			var err error
			switch d.Cmd {
			case "ranks":
				if c, err = layoutOf(d); err == nil {
					return "ok"
				}
			case "group":
				var said string
				if said, err = groupOf(c, d); err == nil {
					return said
				}
			default:
				d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			}
			return "error: " + err.Error()
		}
	})
}

func layoutOf(d *datadriven.TestData) (*connect.Layout, error) {
	number := func(text string) int {
		n, _ := strconv.Atoi(text)
		return n
	}
	r, err := rules.For(ruletest.Value(d, "release", ""))
	if err != nil {
		return nil, err
	}
	c := draw.Plain(number(ruletest.Word(d, 0)), number(ruletest.Value(d, "nodes", "1")),
		number(ruletest.Value(d, "channels", "8")))
	c.Rules = r
	c.P2PChannelsPerPeer = number(ruletest.Value(d, "perpeer", fmt.Sprint(c.P2PChannelsPerPeer)))
	return c, nil
}

// asked is a call with the choice that it shall have.
type asked struct {
	launch.Call
	choice launch.Choice
}

func groupOf(c *connect.Layout, d *datadriven.TestData) (string, error) {
	of := &launch.Comm{Layout: c}
	chosen := map[coll.Func]launch.Choice{}
	var b strings.Builder
	of.Choose = func(o launch.Op) (launch.Choice, error) {
		if ruletest.Word(d, 0) == "asked" {
			fmt.Fprintf(&b, "asked: %v of %d %v, %d a channel\n", o.Func, o.Count, o.Type, o.Pipe)
		}
		return chosen[o.Func], nil
	}
	var calls []launch.Call
	for line := range strings.Lines(eachRank(d.Input, c.NRanks)) {
		times, call, ok := strings.Cut(line, "* ")
		if !ok {
			times, call = "1", line
		}
		a, err := callOf(c, strings.Fields(call))
		n, bad := strconv.Atoi(times)
		if err = cmp.Or(err, bad); err != nil {
			return "", fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		if calls = append(calls, slices.Repeat([]launch.Call{a.Call}, n)...); chosen[a.Func].Channels == 0 {
			chosen[a.Func] = a.choice
		}
	}
	for key, to := range map[string]*int64{"args": &of.ArgsBytes, "fifo": &of.FIFOBytes} {
		if text := ruletest.Value(d, key, ""); text != "" {
			b, err := units.ParseBytes(text)
			if err != nil {
				return "", err
			}
			*to = int64(b)
		}
	}
	mode := launch.Eager
	switch ruletest.Word(d, 0) {
	case "graph":
		mode = launch.Captured
	case "windows":
		of.Symmetric = &sym.Comm{Rules: &c.Rules.Sym, Ranks: c.NRanks, Nodes: c.NNodes, SM: 90, NVLS: true,
			P2P: true, DirectP2P: true, DirectNVLink: true, PerNode: c.NRanks / c.NNodes}
	}
	kernels, err := launch.Plan(of, calls, mode)
	if err != nil {
		return "", err
	}
	for i := range kernels {
		if k := &kernels[i]; ruletest.Word(d, 0) == "count" || ruletest.Word(d, 1) == "count" {
			fmt.Fprintf(&b, "kernel of %d threads: %d collectives, rank 0 has %d batches\n", k.Threads,
				len(k.Tasks), k.Batches[0])
		} else {
			describe(&b, calls, k)
		}
	}
	return b.String(), nil
}

// eachRank writes a line with "all" once for each rank in its place.
func eachRank(lines string, ranks int) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		n := 1
		if strings.Contains(line, " all ") {
			n = ranks
		}
		for r := range n {
			b.WriteString(strings.Replace(strings.TrimSpace(line), " all ", fmt.Sprintf(" %d ", r), 1) + "\n")
		}
	}
	return b.String()
}

func callOf(c *connect.Layout, words []string) (a asked, err error) {
	word := func(n int) string {
		if n < len(words) {
			return words[n]
		}
		return ""
	}
	number := func(text string) int32 {
		n, _ := strconv.Atoi(text)
		return int32(n)
	}
	a.Type, a.choice = coll.Int8, launch.Choice{Algo: coll.Ring, Proto: coll.Simple, Channels: c.NChannels,
		Warps: 17}
	sized := func(text string) (asked, error) {
		bytes, err := units.ParseBytes(text)
		a.Count = int64(bytes / a.Type.Size())
		return a, err
	}
	a.InPlace = word(4) == "in"
	switch word(0) {
	case "send":
		a.Func, a.Rank, a.Peer = coll.Send, number(word(1)), number(word(2))
		return sized(word(3))
	case "recv":
		a.Func, a.Rank, a.Peer = coll.Recv, number(word(1)), number(word(2))
		return sized(word(3))
	}
	if a.Func, err = coll.ParseFunc(word(0)); err != nil {
		return a, err
	}
	for i := 2; i < len(words); i++ {
		if root, ok := strings.CutPrefix(words[i], "root="); ok {
			a.Root = number(root)
		} else if warps, ok := strings.CutPrefix(words[i], "warps="); ok {
			a.choice.Warps = int(number(warps))
		} else if w, ok := map[string]sym.Windows{"window": sym.Both,
			"sendwindow": sym.SendWindow}[words[i]]; ok {
			a.Windows = w
		} else if words[i] == "by" {
			if a.choice.Algo, err = coll.ParseAlgorithm(word(i + 1)); err != nil {
				return a, err
			}
			if a.choice.Proto, err = coll.ParseProtocol(word(i + 2)); err != nil {
				return a, err
			}
			a.choice.Channels = int(number(word(i + 3)))
			break
		} else if op, fail := coll.ParseRedOp(words[i]); fail == nil {
			a.Op = op
		} else if a.Type, err = coll.ParseDataType(words[i]); err != nil {
			return a, err
		}
	}
	return sized(word(1))
}

func describe(b *strings.Builder, calls []launch.Call, k *launch.Kernel) {
	if k.Symmetric != nil {
		fmt.Fprintf(b, "symmetric kernel of %d threads: %s\n", k.Threads, k.Symmetric.Line())
		return
	}
	fmt.Fprintf(b, "kernel of %d threads", k.Threads)
	if len(k.Batches) > 0 {
		fmt.Fprintf(b, ", batches %v", k.Batches)
	}
	b.WriteString("\n")
	for i := range k.Tasks {
		t := &k.Tasks[i]
		fmt.Fprintf(b, "  call %d: %v %v %v, channels %d-%d", t.Call, t.Req.Func, t.Req.Algo, t.Req.Proto,
			t.Split.ChannelLo, t.Split.ChannelHi)
		if cut := t.Req.Cut; cut != nil {
			fmt.Fprintf(b, ", %d %d %d of %d", cut.Lo, cut.Mid, cut.Hi, calls[t.Call].Count)
		}
		b.WriteString("\n")
	}
	for rank, own := range k.Exchanges {
		for _, x := range own {
			fmt.Fprintf(b, "  rank %d, round %d:", rank, x.Round)
			if x.Send >= 0 {
				fmt.Fprintf(b, " %d bytes to %d", k.Messages[x.Send].Bytes, k.Messages[x.Send].Dst)
			}
			if x.Recv >= 0 {
				fmt.Fprintf(b, " %d bytes from %d", k.Messages[x.Recv].Bytes, k.Messages[x.Recv].Src)
			}
			fmt.Fprintf(b, ", batches %v\n", x.Batch)
		}
	}
}

package rules_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/rules"
)

// TestConversations: a release in, its rules out.
//
//	rules RELEASE STAGE        those of a stage (topo, search, connect, tuning, plan, sym, log) that are set
//	since OLDER NEWER          what the newer release changed, older → newer
//	peers RELEASE [per=N]      channels a peer between nodes: a line for ranks, channels and nets
//	registered RELEASE OP [busbw=GB/s] [net=GB/s]   channels of NVLS over registered buffers
//	nvls RELEASE tree|all-reduce|gather [channels=N]  its bus bandwidth in GB/s a channel
//	collnet RELEASE            bus bandwidth of gathers by CollNetDirect
//	tuned RELEASE net=GB/s [to=far]   channels and chunks of NVLS by nodes and ranks of a node
//	arch RELEASE ARCH          what RCCL has for an architecture of AMD
//	places RELEASE             presets of hosts by their number, and windows of PAT
//	costs RELEASE TABLE        a table of RCCL's cost model
//	cites RELEASE              where RCCL has its conditions
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			r, err := rules.For(ruletest.Word(d, 0))
			if err != nil {
				return "error: " + err.Error()
			}
			f := map[string]func(*rules.Ruleset, *datadriven.TestData) string{"rules": stage, "since": since,
				"peers": peers, "registered": registered, "nvls": nvls, "collnet": collnet,
				"tuned": tuned,
				"arch":  arch, "places": places, "costs": costs, "cites": cites}[d.Cmd]
			if f == nil {
				d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			}
			return f(r, d)
		}
	})
}

// values are the rules of a release by name, in order.
func values(r *rules.Ruleset) (names []string, of map[string]reflect.Value) {
	of = map[string]reflect.Value{}
	var add func(name string, v reflect.Value, deep int)
	add = func(name string, v reflect.Value, deep int) {
		if v.Kind() != reflect.Struct || deep == 0 || name == "Release" || name == "Edition" {
			names = append(names, name)
			of[name] = v
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Anonymous { // what RCCL alone has
				add(name, v.Field(i), 1)
			} else {
				add(strings.TrimPrefix(name+"."+f.Name, "."), v.Field(i), deep-1)
			}
		}
	}
	add("", reflect.ValueOf(r).Elem(), 2)
	return names, of
}

// text is a value; rows of a table are lines, and a function says that it is one.
func text(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Func:
		if v.IsNil() {
			return "none"
		}
		return "by a function"
	case reflect.Array, reflect.Slice:
		if v.Type().Elem() == reflect.TypeFor[rules.CostTable]() { // costs prints them
			return fmt.Sprintf("%d tables", v.Len())
		}
		if v.Len() > 0 && v.Index(0).Kind() != reflect.String && v.Index(0).Kind() >= reflect.Array {
			var b strings.Builder
			for i := range v.Len() {
				fmt.Fprintf(&b, "\n  %v", v.Index(i))
			}
			return b.String()
		}
	}
	return fmt.Sprintf("%v", v)
}

func stage(r *rules.Ruleset, d *datadriven.TestData) string {
	var b strings.Builder
	names, of := values(r)
	for _, name := range names {
		if strings.HasPrefix(strings.ToLower(name), ruletest.Word(d, 1)) && !of[name].IsZero() {
			fmt.Fprintf(&b, "%s: %s\n", name, text(of[name]))
		}
	}
	return b.String()
}

func since(older *rules.Ruleset, d *datadriven.TestData) string {
	newer, err := rules.For(ruletest.Word(d, 1))
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	names, was := values(older)
	_, is := values(newer)
	for _, name := range names {
		x, y := was[name], is[name]
		if x.Kind() == reflect.Func && x.Pointer() != y.Pointer() {
			fmt.Fprintf(&b, "%s: %s → another\n", name, text(x))
		} else if x.Kind() != reflect.Func && !reflect.DeepEqual(x.Interface(), y.Interface()) {
			fmt.Fprintf(&b, "%s: %s → %s\n", name, text(x), text(y))
		}
	}
	return b.String()
}

func number(d *datadriven.TestData, key, other string) float32 {
	v, _ := strconv.ParseFloat(ruletest.Value(d, key, other), 32)
	return float32(v)
}

func peers(r *rules.Ruleset, d *datadriven.TestData) string {
	var b strings.Builder
	for _, p := range []rules.Peer{{Ranks: 16, P2PChannels: 8}, {Ranks: 17, P2PChannels: 8},
		{Ranks: 32, P2PChannels: 8}, {Ranks: 1024, P2PChannels: 8}, {Ranks: 16, P2PChannels: 8, NetsToFill: 1,
			NetsBW: 48},
		{Ranks: 1024, P2PChannels: 8, NetsToFill: 2, NetsBW: 24}, {Ranks: 16, P2PChannels: 32, NetsToFill: 4,
			NetsBW: 100},
		{Ranks: 16, P2PChannels: 32, NetsToFill: 1, NetsBW: 57}} {
		p.ChannelBW = int(number(d, "per", "14"))
		fmt.Fprintf(&b, "%d ranks, %d channels, %d nets of %v GB/s: %d\n", p.Ranks, p.P2PChannels,
			p.NetsToFill,
			p.NetsBW, r.Connect.PeerChannels(p))
	}
	return b.String()
}

func registered(r *rules.Ruleset, d *datadriven.TestData) string {
	f, err := coll.ParseFunc(ruletest.Word(d, 1))
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, sm := range []int{90, 99, 100} {
		for _, nodes := range []int{1, 2} {
			fmt.Fprintf(&b, "sm_%d, %d nodes:", sm, nodes)
			for _, heads := range []int{1, 7, 8} {
				fmt.Fprintf(&b, " %d of %d heads",
					r.Plan.NVLSRegistered(rules.NVLSRegistration{Func: f, MinSM: sm,
						Nodes: nodes, Heads: heads, BusBW: float64(number(d, "busbw", "300")),
						NetBW: number(d, "net", "48")}), heads)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func nvls(r *rules.Ruleset, d *datadriven.TestData) string {
	var b strings.Builder
	in := rules.NVLS{Channels: int(number(d, "channels", "16")), Tree: ruletest.Word(d, 1) == "tree",
		AllReduce: ruletest.Word(d, 1) != "gather"}
	for _, row := range []struct {
		class, nodes          int
		intra, inter, perNode float32
	}{{2, 1, 40, 400, 8}, {2, 2, 400, 20, 8}, {2, 3, 400, 20, 8}, {2, 4, 400, 400, 8}, {3, 1, 40, 400, 4},
		{3, 2, 400, 400, 4}, {3, 4, 400, 400, 4}} {
		in.Class, in.Nodes, in.Scale, in.Intra, in.Inter, in.PerNode = row.class, row.nodes,
			min(row.nodes, 3)-1,
			row.intra, row.inter, row.perNode
		fmt.Fprintf(&b, "%s, %d nodes of %v, graph of %v and %v: %.4g\n",
			[]string{"", "", "sm_90", "sm_100"}[row.class],
			row.nodes, row.perNode, row.intra, row.inter, r.Tuning.NVLSBandwidth(&r.Tuning, in))
	}
	return b.String()
}

func collnet(r *rules.Ruleset, _ *datadriven.TestData) string {
	var b strings.Builder
	for _, row := range [][3]float32{{1, 20, 40}, {4, 20, 40}, {8, 20, 40}, {8, 20, 10}} {
		fmt.Fprintf(&b, "%v ranks a node, graph of %v and %v: %.4g\n", row[0], row[1], row[2],
			r.Tuning.CollNetGather(row[0], row[1], row[2], true))
	}
	return b.String()
}

func tuned(r *rules.Ruleset, d *datadriven.TestData) string {
	var b strings.Builder
	to := rules.PXB
	if ruletest.Value(d, "to", "") == "far" {
		to++
	}
	for _, sm := range []int{90, 100} {
		for _, nodes := range []int{1, 2, 3} {
			for _, perNode := range []int{4, 5, 8, 9, 15, 16, 31, 32} {
				n := r.Connect.NVLSTune(rules.NVLSShape{MinSM: sm, Nodes: nodes, PerNode: perNode,
					NetBW: number(d, "net", "48"), TypeInter: to})
				if n != (rules.NVLSTuned{}) {
					fmt.Fprintf(&b, "%d nodes of %d: %d channels, chunks of %d KiB, of the tree %d KiB\n",
						nodes, perNode,
						n.Channels, n.Chunk>>10, n.TreeChunk>>10)
				}
			}
		}
	}
	return b.String()
}

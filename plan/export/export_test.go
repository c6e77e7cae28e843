package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/units"
)

// TestFlowsAreTheSends: as many flows as sends, each after what it depends on
// in some order (no cycle), with the bytes that the algorithm must move.
func TestFlowsAreTheSends(t *testing.T) {
	for _, s := range [][3]int{{4, 1, 2}, {2, 4, 2}} {
		c := draw.Plain(s[0], s[1], s[2])
		for _, r := range draw.Kernels(s[1]) {
			r.Count, r.Type, r.Channels = 40000, coll.Float32, s[2]
			p, err := build.Plan(c, r)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%v %v/%v", r.Func, r.Algo, r.Proto)
			if len(p.NetGroups()) > 0 {
				requireNoFlows(t, p)
				continue
			}
			posts := 0
			for op := range p.Ops() {
				if op.Do&plan.HoldSend == 0 {
					posts += len(op.To)
				}
			}
			deps := map[int64][]int64{}
			total := units.Bytes(0)
			if err := EachFlow(p, func(f *Flow) error {
				if f.ID != int64(len(deps)) {
					t.Errorf("%s: flow %d comes as number %d", name, f.ID, len(deps))
				}
				deps[f.ID] = append([]int64(nil), f.Deps...)
				if f.Prev >= 0 {
					deps[f.ID] = append(deps[f.ID], f.Prev)
				}
				total += f.Bytes
				return nil
			}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(deps) != posts {
				t.Errorf("%s: %d flows of %d sends", name, len(deps), posts)
			}
			if !acyclic(deps) {
				t.Errorf("%s: flows depend on each other in a circle", name)
			}
			if want, ok := mustMove(p); ok && total != want {
				t.Errorf("%s: flows carry %d bytes, must be %d", name, total, want)
			}
		}
	}
}

// mustMove returns the bytes that all ranks together send, where that is a
// closed form.
func mustMove(p *plan.Plan) (units.Bytes, bool) {
	n, size := units.Bytes(p.Comm.NRanks), units.Bytes(p.Req.Count)*p.Req.Type.Size()
	switch {
	case p.Req.Algo >= coll.NVLS && p.Req.Algo <= coll.NVLSTree:
		return 0, false
	case p.Req.Func == coll.AllReduce:
		return 2 * (n - 1) * size, true
	case p.Req.Func == coll.AllGather, p.Req.Func == coll.ReduceScatter, p.Req.Func == coll.AllToAll:
		return n * (n - 1) * size, true
	case p.Req.Func == coll.SendRecv:
		return n * size, true
	}
	return (n - 1) * size, true
}

func acyclic(deps map[int64][]int64) bool {
	state := map[int64]int{}
	var visit func(int64) bool
	visit = func(i int64) bool {
		switch state[i] {
		case 1:
			return false
		case 2:
			return true
		}
		state[i] = 1
		for _, d := range deps[i] {
			if !visit(d) {
				return false
			}
		}
		state[i] = 2
		return true
	}
	for i := range int64(len(deps)) {
		if !visit(i) {
			return false
		}
	}
	return true
}

// TestFlowsCSV shows the file that SimCCL's users read.
func TestFlowsCSV(t *testing.T) {
	p, err := build.Plan(draw.Plain(2, 2, 1), plan.Request{Func: coll.Broadcast, Algo: coll.Ring,
		Proto: coll.LL, Count: 10000, Type: coll.Float32, Root: 1, Channels: 1, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteFlows(&b, p); err != nil {
		t.Fatal(err)
	}
	want := FlowsHeader + "\n" + strings.Join([]string{
		"Broadcast,0,40000,1,0,0,0,1,2,32768,0,2,NET,,",
		"Broadcast,0,40000,1,0,0,1,1,2,7232,1,2,NET,,0",
		"Broadcast,0,40000,1,0,0,2,2,3,32768,0,2,P2P,0,",
		"Broadcast,0,40000,1,0,0,3,2,3,7232,1,2,P2P,1,2",
		"Broadcast,0,40000,1,0,0,4,3,0,32768,0,2,NET,2,",
		"Broadcast,0,40000,1,0,0,5,3,0,7232,1,2,NET,3,4",
	}, "\n") + "\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestGOALMatches: every send has its receive with equal bytes and tag, in
// order, and labels are required only after their definition.
func TestGOALMatches(t *testing.T) {
	send := regexp.MustCompile(`^l(\d+): send (\d+)b to (\d+) tag (\d+) cpu (\d+)$`)
	recv := regexp.MustCompile(`^l(\d+): recv (\d+)b from (\d+) tag (\d+) cpu (\d+)$`)
	req := regexp.MustCompile(`^l(\d+) requires l(\d+)$`)
	for _, s := range [][3]int{{4, 1, 2}, {2, 4, 2}} {
		for _, r := range draw.Kernels(s[1]) {
			r.Count, r.Type, r.Channels = 10000, coll.Float32, s[2]
			p, err := build.Plan(draw.Plain(s[0], s[1], s[2]), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.NetGroups()) > 0 {
				requireNoFlows(t, p)
				continue
			}
			var b bytes.Buffer
			if err := WriteGOAL(&b, p); err != nil {
				t.Fatal(err)
			}
			rank, labels := "", 0
			sent, got := map[string][]string{}, map[string][]string{}
			for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
				switch m := send.FindStringSubmatch(line); {
				case i == 0 && line == fmt.Sprintf("num_ranks %d", p.Comm.NRanks), line == "", line == "}":
				case strings.HasPrefix(line, "rank "):
					rank, labels = strings.Fields(line)[1], 0
				case m != nil:
					labels++
					sent[rank+">"+m[3]+" "+m[4]] = append(sent[rank+">"+m[3]+" "+m[4]], m[2])
				case recv.MatchString(line):
					labels++
					m = recv.FindStringSubmatch(line)
					got[m[3]+">"+rank+" "+m[4]] = append(got[m[3]+">"+rank+" "+m[4]], m[2])
				case req.MatchString(line):
					m = req.FindStringSubmatch(line)
					a, _ := strconv.Atoi(m[1])
					d, _ := strconv.Atoi(m[2])
					if a > labels || d >= a || d < 1 {
						t.Fatalf("%v %v line %d: %s", r.Func, r.Algo, i+1, line)
					}
				default:
					t.Fatalf("line %d is not GOAL: %s", i+1, line)
				}
			}
			if fmt.Sprint(sent) != fmt.Sprint(got) {
				t.Errorf("%v %v/%v: sent %v, received %v", r.Func, r.Algo, r.Proto, sent, got)
			}
		}
	}
}

// requireNoFlows: what the network does is no message between ranks, so no list
// of messages is written, nor half of one.
func requireNoFlows(t *testing.T, p *plan.Plan) {
	t.Helper()
	for _, write := range []func(io.Writer, *plan.Plan) error{WriteFlows, WriteGOAL} {
		var b bytes.Buffer
		if err := write(&b, p); !errors.Is(err, plan.ErrUnsupported) || b.Len() > 0 {
			t.Errorf("%v %v: %v after %d bytes; want ErrUnsupported", p.Req.Func, p.Req.Algo, err, b.Len())
		}
	}
}

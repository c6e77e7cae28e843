package chakra

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/workload"
)

// TestCallsAreOfTheFormat: each operation has the format's type and size, of all ranks where each has a part
// of its own; messages name their ends; what the format lacks is said to be lost.
func TestCallsAreOfTheFormat(t *testing.T) {
	p := &workload.Program{Of: make([]int32, 4), Comms: []workload.Comm{{Name: "world"}}}
	e := &exporter{p: p, lost: map[string]int{}}
	var b strings.Builder
	say := func(c workload.Call) {
		n := Node{}
		c.Count, c.Type, c.Peer = 10, coll.Float32, 2
		e.call(&n, &c, 1)
		fmt.Fprintf(&b, "%s: type %v, collective %v %v, %d bytes, %d us, group %s, from %d to %d, tag %d\n",
			n.Name, n.Type, n.HasColl, n.Coll, n.Bytes, n.Dur, n.Group, n.Src, n.Dst, n.Tag)
	}
	for f := range coll.NumFuncs {
		say(workload.Call{Func: f, Recorded: 1_499_999})
	}
	say(workload.Call{Func: coll.Send, Recorded: 1_500_000})
	say(workload.Call{Func: coll.Recv, Recorded: 500_000})
	say(workload.Call{Func: coll.Recv, Recorded: 499_999})
	fmt.Fprintf(&b, "lost: %q\n", e.order)
	golden.Text(t, "testdata/calls.txt", b.String())
}

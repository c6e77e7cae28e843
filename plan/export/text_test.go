package export

import (
	"bytes"
	"os"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
)

func text(t interface{ Fatal(...any) }, p *plan.Plan) string {
	var b bytes.Buffer
	if err := WriteText(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTextOfARing shows the form; testdata/ring2.plan is also the picture of
// it for readers.
func TestTextOfARing(t *testing.T) {
	c := draw.Plain(2, 1, 1)
	p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple,
		Count: 1024, Type: coll.Float32, Channels: 1, Warps: 17})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/ring2.plan")
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, p); got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

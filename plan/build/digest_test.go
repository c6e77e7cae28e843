package build

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/export"
)

// TestPlansKeepTheirDigests pins every op, connection and message of every
// kernel on four communicators: testdata/digests.txt holds a digest of the text
// form, the CSV and the GOAL form of each plan.
func TestPlansKeepTheirDigests(t *testing.T) {
	var b strings.Builder
	for _, s := range [][3]int{{4, 1, 2}, {3, 2, 2}, {2, 3, 4}, {1, 5, 1}} {
		c := draw.Plain(s[0], s[1], s[2])
		for _, r := range draw.Kernels(s[1]) {
			for i, count := range []int64{3, 4099, 70001} {
				r.Count, r.Channels, r.InPlace = count, s[2], i == 1
				r.Type = []coll.DataType{coll.Float32, coll.Int8, coll.BFloat16}[i]
				r.Root = int32(i % c.NRanks)
				p, err := Plan(c, r)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%dx%d %d %v %v %v %d:", s[1], s[0], s[2], r.Func.TestName(), r.Algo, r.Proto,
					count)
				for _, write := range []func(io.Writer, *plan.Plan) error{
					export.WriteText, export.WriteFlows, export.WriteGOAL} {
					var text bytes.Buffer
					if err := write(&text, p); err != nil {
						fmt.Fprint(&b, " -") // operations of the network are no messages
						continue
					}
					sum := sha256.Sum256(text.Bytes())
					fmt.Fprintf(&b, " %x", sum[:8])
				}
				fmt.Fprintln(&b)
			}
		}
	}
	golden.Text(t, "testdata/digests.txt", b.String())
}

package ncclog_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/parity"
	"github.com/simccl/simccl/study/ncclog"
)

// TestWrite prints the log of 2 x DGX H100 with NVLink multicast, which no real
// log here has; read the difference before accepting it.
func TestWrite(t *testing.T) {
	c, _, err := parity.Build(filepath.Join(golden.Root(t), "testdata", "topos", "dgx-h100.xml"), 2, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all, graph bytes.Buffer
	if err := ncclog.Write(&all, c); err != nil {
		t.Fatal(err)
	}
	if err := ncclog.Write(&graph, c, ncclog.Graph); err != nil {
		t.Fatal(err)
	}
	if graph.Len() == 0 || graph.Len() >= all.Len() || strings.Contains(graph.String(), "Max NThreads") {
		t.Error("the subsystem does not select")
	}
	for _, want := range []string{
		"node0:0:0 [0] NCCL INFO === System : maxBw 48.0 totalBw 370.8 ===\n",
		"node1:15:15 [7] NCCL INFO ",
		"NCCL INFO Pattern 5, crossNic 0, nChannels 8, bw 40.000000/48.000000, type NVL/PIX, sameChannels 0\n",
		"node0:0:0 [0] NCCL INFO  0 : NET/0-0 GPU/0-1b000 NET/0-0\n",
		"node0:3:3 [3] NCCL INFO NVLS Head  7:  7 15\n",
		"node0:0:0 [0] NCCL INFO NVLS Trees : 17/8/-1->0->-1 17/-1/-1->0->8\n",
		"node0:0:0 [0] NCCL INFO Channel 00/16 :  0  7  6  5  4  3  2  1  9 10 11 12 13 14 15  8\n",
		"NCCL INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer\n",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("missing: %q", want)
		}
	}
	if n := strings.Count(all.String(), "  Algorithm   |"); n != 3 {
		t.Errorf("the cost table has %d blocks, NCCL prints 3, on rank 0 only", n)
	}
}

// TestLongRings cuts what does not fit NCCL's line (rings.cc:9).
func TestLongRings(t *testing.T) {
	c, _, err := parity.Build(filepath.Join(golden.Root(t), "testdata", "topos", "dgx-h100.xml"), 8, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range ncclog.OfRank(c, 0) {
		if strings.HasPrefix(l.Text, "Channel ") && (len(l.Text) != 127 || !strings.HasSuffix(l.Text, "...")) {
			t.Errorf("%d bytes: %q", len(l.Text), l.Text)
		}
	}
}

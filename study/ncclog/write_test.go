package ncclog_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/parity"
	"github.com/simccl/simccl/study/ncclog"
)

// writeAll writes the lines of all ranks.
func writeAll(w io.Writer, c *comm.Comm, subs ...ncclog.Subsystem) error {
	for r := range int32(c.NRanks) {
		if err := ncclog.WriteRank(w, c, r, subs...); err != nil {
			return err
		}
	}
	return nil
}

// TestWrite prints the log of 2 x DGX H100 with NVLink multicast, which no real
// log here has; read the difference before accepting it.
func TestWrite(t *testing.T) {
	c, _, err := parity.Build(filepath.Join(golden.Root(t), "testdata", "topos", "dgx-h100.xml"), 2, true,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	var all, graph bytes.Buffer
	if err := writeAll(&all, c); err != nil {
		t.Fatal(err)
	}
	if err := writeAll(&graph, c, ncclog.Graph); err != nil {
		t.Fatal(err)
	}
	if graph.Len() == 0 || graph.Len() >= all.Len() || strings.Contains(graph.String(), "Max NThreads") {
		t.Error("the subsystem does not select")
	}
	for _, want := range []string{
		"node0:0:0 [0] NCCL INFO === System : maxBw 48.0 totalBw 370.8 ===\n",
		"node1:15:15 [7] NCCL INFO ",
		"NCCL INFO Pattern 5, crossNic 0, nChannels 8, bw 40.000000/48.000000, type NVL/PIX, sameChannels " +
			"0\n",
		"node0:0:0 [0] NCCL INFO  0 : NET/0-0 GPU/0-1b000 NET/0-0\n",
		"node0:3:3 [3] NCCL INFO NVLS Head  7:  7 15\n",
		"node0:0:0 [0] NCCL INFO NVLS Trees : 17/8/-1->0->-1 17/-1/-1->0->8\n",
		"node0:0:0 [0] NCCL INFO Channel 00/16 :  0  7  6  5  4  3  2  1  9 10 11 12 13 14 15  8\n",
		"NCCL INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p " +
			"channels per peer\n",
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
	c, _, err := parity.Build(filepath.Join(golden.Root(t), "testdata", "topos", "dgx-h100.xml"), 8, false,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range ncclog.OfRank(c, 0) {
		if strings.HasPrefix(l.Text, "Channel ") &&
			(len(l.Text) != 127 || !strings.HasSuffix(l.Text, "...")) {
			t.Errorf("%d bytes: %q", len(l.Text), l.Text)
		}
	}
}

// TestLogsOfAMDAreRefused: RCCL writes with NCCL's prefix; whatever names it refuses the
// log as AMD's, also where GPUs are linked by PCIe alone. A log of NCCL may name it.
func TestLogsOfAMDAreRefused(t *testing.T) {
	const body = "h:1:1 [0] NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===\n" +
		"h:1:1 [0] NCCL INFO CPU/0 (1/2/-1)\nh:1:1 [0] NCCL INFO + PCI[24.0] - GPU/3000 (0)\n"
	for _, line := range []string{
		"RCCL version 2.18.6+hip5.7 HEAD:1234", "h:1:1 [0] NCCL INFO RCCL version : 2.22.3-HEAD:abc",
		"h:1:1 [0] NCCL INFO HIP version  : 6.3.42131", "h:1:1 [0] NCCL INFO ROCm version : 6.3.0.0-39",
		"NCCL version 2.13.4+hip5.4", "h:1:1 [0] NCCL INFO Librccl path : /opt/rocm/lib/librccl.so.1",
		"h:1:1 [0] RCCL INFO Bootstrap : Using eth0",
		"h:1:1 [0] NCCL INFO RCCL_MSCCL_ENABLE set by environment to 1.",
		"h:1:1 [0] NCCL INFO               + XGMI[48.0] - GPU/4000",
	} {
		_, err := ncclog.Read(ncclog.File{Name: "amd.log", Data: []byte(body + line + "\n")})
		var amd *ncclog.AMDError
		if !errors.As(err, &amd) || amd.Line != 4 || !strings.Contains(err.Error(), "RCCL, AMD's library") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := ncclog.Read(ncclog.File{Name: "nccl.log",
		Data: []byte("h:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n" +
			"this also runs with RCCL version 2.22\n")}); err != nil {
		t.Errorf("a log of NCCL: %v", err)
	}
}

// FuzzRead: anything is read or refused, and lines have places in the file.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"h:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n" +
			"h:1:2 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1h:1:3 [1] NCCL INFO Trees [0] 1/-1/-1->0->-1\n",
		"CPU/0-0 (1/1/2)\n+ PCI[24.0] - GPU/0-1000 (0)\n",
		"h:1:2 [0] NCCL INFO comm 0x1 rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0\n" +
			"h:1:2 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 0 / HCA 1 (distance 4 <= 5), read 0\n",
		"{\"log\":\"h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB " +
			"eth0:192.0.2.1<0>\\n\"}\n", "RCCL version 2.18.6\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := ncclog.Read(ncclog.File{Name: "log", Data: data})
		if err != nil {
			return
		}
		for _, c := range log.Comms {
			for _, k := range c.Ranks {
				for _, l := range k.Lines {
					if l.Line < 1 {
						t.Fatalf("%q has no line", l.Text)
					}
				}
			}
		}
	})
}

package scenario

import (
	"context"
	"testing"

	"github.com/simccl/simccl/config"
)

// TestDeviceImplementations: nccl-tests' own kernels take what the links allow where they
// move 16 bytes at a time, and longer by the element, and on fewer blocks; they need windows and one domain.
func TestDeviceImplementations(t *testing.T) {
	opt := Options{Settings: config.Sources{NoEnv: true}}
	us := func(op string, device, blocks int) float64 {
		t.Helper()
		s := Spec{Machine: Machine{Nodes: []Nodes{{Topo: "dgx-h100", Count: 1}}},
			Workload: Workload{Op: op, Sizes: []string{"16M"},
				Buffers: "windows", Device: device, DeviceBlocks: blocks}}
		r, err := Run(context.Background(), s, opt)
		if err != nil {
			t.Fatal(err)
		}
		return r.Rows[0].Out.Time.Micros()
	}
	for _, op := range []string{"all_reduce", "alltoall"} {
		narrow, wide := us(op, 1, 0), us(op, 2, 0)
		if wide >= narrow {
			t.Errorf("%s: by 16 bytes %g us, by 4 %g", op, wide, narrow)
		}
		if few := us(op, 1, 4); few < 2*narrow {
			t.Errorf("%s: 4 blocks %g us, 16 %g", op, few, narrow)
		}
	}
	for _, w := range []Workload{{Op: "all_reduce", Device: 1}, {Op: "all_gather", Buffers: "windows",
		Device: 1}, {Op: "alltoall", Buffers: "windows", Device: 3},
		{Op: "all_reduce", Buffers: "windows", Device: -1}} {
		w.Sizes = []string{"1M"}
		if _, err := Run(context.Background(), Spec{Workload: w}, opt); err == nil {
			t.Errorf("%+v runs", w)
		}
	}
}

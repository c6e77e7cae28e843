//go:build !cgo && linux && (amd64 || arm64)

package detect

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGPUsAreNVMLs: links count that are up and can do peer-to-peer (NVML_NVLINK_CAP_P2P_SUPPORTED), as many
// as NCCL asks for; from sm_90 on their state is a field. Of C2C those that are up and have a speed count,
// the speed being the last one's.
func TestGPUsAreNVMLs(t *testing.T) {
	driver(t, "libcuda.so.1", "cuda_init")
	fails := driver(t, "libnvidia-ml.so.1", "nvml_init")
	*fails = 9
	if _, err := NVML(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("without a driver: %v", err)
	}
	*fails = 0
	got, err := NVML()
	if err != nil {
		t.Fatal(err)
	}
	const hidden = "fffffff:ff:ff.0"
	want := []GPU{
		{Index: 0, BusID: "0000:1b:00.0", SM: 90, GDR: true, DMABuf: true, Name: "GPU of sm_90",
			Links:   append([]string{"0000:1c:00.0"}, slices.Repeat([]string{hidden}, 7)...),
			C2CMBps: 40001, C2CCount: 2},
		{Index: 1, BusID: "0000:1c:00.0", SM: 80, GDR: true, Name: "GPU of sm_80",
			Links: []string{"0000:1b:00.0", hidden}},
		{Index: 2, BusID: "10000:1d:00.0", SM: 80, DMABuf: true, Name: "GPU of sm_80",
			Links: []string{"0000:1c:00.0", hidden}},
		{Index: 3, BusID: "0000:1e:00.0", SM: 50, Name: "GPU of sm_50"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

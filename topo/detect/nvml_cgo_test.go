//go:build cgo && linux

package detect

import (
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// TestLinksBetweenGPUs: NVML names the far ends of NVLinks with eight digits of
// the domain, sysfs and NCCL with four; one that a virtual machine does not see
// keeps its odd name.
func TestLinksBetweenGPUs(t *testing.T) {
	ids := []string{"00000000:3D:00.0", "00000000:C4:00.0", "00010000:C5:00.0", "FFFFFFF:FF:FF.0"}
	pci := func(id string) (out nvml.PciInfo) {
		for i := range id {
			out.BusId[i] = int8(id[i])
		}
		return out
	}
	d := &mock.Device{
		GetPciInfoFunc:               func() (nvml.PciInfo, nvml.Return) { return pci(ids[0]), nvml.SUCCESS },
		GetCudaComputeCapabilityFunc: func() (int, int, nvml.Return) { return 8, 0, nvml.SUCCESS },
		GetNameFunc:                  func() (string, nvml.Return) { return "A100", nvml.SUCCESS },
		GetNvLinkCapabilityFunc: func(int, nvml.NvLinkCapability) (uint32, nvml.Return) {
			return 1, nvml.SUCCESS
		},
		GetNvLinkStateFunc: func(l int) (nvml.EnableState, nvml.Return) {
			if l > 3 {
				return nvml.FEATURE_DISABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		},
		GetNvLinkRemotePciInfoFunc: func(l int) (nvml.PciInfo, nvml.Return) {
			return pci(ids[max(l, 1)]), nvml.SUCCESS
		},
	}
	g := readDevice(d, 0)
	want := []string{"0000:c4:00.0", "0000:c4:00.0", "10000:c5:00.0", "fffffff:ff:ff.0"}
	if g.BusID != "0000:3d:00.0" || g.SM != 80 || !slices.Equal(g.Links, want) {
		t.Errorf("%+v, want links to %v", g, want)
	}
}

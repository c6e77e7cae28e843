//go:build cgo && linux

package detect

import (
	"encoding/binary"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/simccl/simccl/topo"
)

// NVML lists the machine's GPUs through go-nvml (builds with cgo).
func NVML() ([]GPU, error) {
	if r := nvml.Init(); r != nvml.SUCCESS {
		return nil, &AbsentError{"libnvidia-ml.so.1 and a driver", nvml.ErrorString(r)}
	}
	defer nvml.Shutdown()
	n, r := nvml.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, &AbsentError{"NVML's device count", nvml.ErrorString(r)}
	}
	var out []GPU
	for i := range n {
		d, r := nvml.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			return nil, &AbsentError{"NVML's access to GPU", nvml.ErrorString(r)}
		}
		out = append(out, readDevice(d, i))
	}
	return withGDR(out), nil
}

func readDevice(d nvml.Device, i int) GPU {
	g := GPU{Index: i}
	if pci, r := d.GetPciInfo(); r == nvml.SUCCESS {
		g.BusID = busID(text(pci.BusId[:]))
	}
	if major, minor, r := d.GetCudaComputeCapability(); r == nvml.SUCCESS {
		g.SM = 10*major + minor
	}
	g.Name, _ = d.GetName()
	for l := range topo.MaxNVLinks(g.SM) {
		if ok, r := d.GetNvLinkCapability(l, capP2P); r != nvml.SUCCESS || ok == 0 ||
			!linkActive(d, l, g.SM) {
			continue
		}
		if far, r := d.GetNvLinkRemotePciInfo(l); r == nvml.SUCCESS {
			g.Links = append(g.Links, busID(text(far.BusId[:])))
		}
	}
	readC2C(d, &g)
	return g
}

func linkActive(d nvml.Device, l, sm int) bool {
	if sm < 90 {
		s, r := d.GetNvLinkState(l)
		return r == nvml.SUCCESS && s == nvml.FEATURE_ENABLED
	}
	v, ok := field(d, fieldNVLinkState, l)
	return ok && v == 1
}

func readC2C(d nvml.Device, g *GPU) {
	if g.SM < 90 {
		return
	}
	n, ok := field(d, fieldC2CCount, 0)
	if !ok {
		return
	}
	for l := range int(n) {
		status, ok1 := field(d, fieldC2CStatus, l)
		bw, ok2 := field(d, fieldC2CMaxBW, l)
		if ok1 && ok2 && status == 1 {
			g.C2CMBps, g.C2CCount = int(bw), g.C2CCount+1
		}
	}
}

func field(d nvml.Device, id uint32, scope int) (uint32, bool) {
	v := []nvml.FieldValue{{FieldId: id, ScopeId: uint32(scope)}}
	if d.GetFieldValues(v) != nvml.SUCCESS || v[0].NvmlReturn != 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(v[0].Value[:]), true
}

func text[T int8 | uint8](c []T) string {
	var b strings.Builder
	for _, x := range c {
		if x == 0 {
			break
		}
		b.WriteByte(byte(x))
	}
	return b.String()
}

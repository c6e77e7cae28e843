package topo

import (
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/internal/view"
	"github.com/simccl/simccl/units"
)

// addDevice adds a GPU and returns the node with its links: the GPU, or its device node if NCCL distinguishes
// them (graph/topo.cc:591 of v2.30.7).
func (d *draft) addDevice(e, g *Element, host int, bus int64, busText string) *vertex {
	if !d.rules.Topo.DevNodes {
		gpu := d.addGPU(g, host, bus, busText)
		gpu.GPU.Device = deviceID(e)
		return gpu
	}
	if part, ok := g.Get("mlopart"); d.rules.Topo.GPUParts && ok && g.Int("mlopart", -1) >= 0 {
		d.complain(g, "mlopart", "a part of a GPU ("+termtext.Quote(part, 0)+"): the parts that NCCL "+
			d.rules.Version()+" makes of it"+d.rules.Aside(rules.AtGPUParts)+" are not modelled",
			"leave it out, and with it the other parts of this GPU")
	}
	dev := d.add(DEV, ident(host, bus), g)
	gpu := d.addGPU(g, host, bus, busText)
	gpu.GPU.Device = deviceID(e)
	dev.Dev = &DevInfo{Device: gpu.GPU.Device, Dev: gpu.GPU.Dev, SM: gpu.GPU.SM, Arch: gpu.GPU.Arch, GPUs: 1}
	connect(dev, gpu, LinkLOC, locBW)
	connect(gpu, dev, LinkLOC, locBW)
	return dev
}

// device finds the node that has a GPU's links, nil where there is none.
func (d *draft) device(host int, bus int64) *vertex {
	if d.rules.Topo.DevNodes {
		return d.get(DEV, ident(host, bus))
	}
	return d.get(GPU, ident(host, bus))
}

// sm returns the compute capability of a GPU or its device.
func (v *vertex) sm() int {
	if v.Kind == DEV {
		return v.Dev.SM
	}
	return v.GPU.SM
}

// gpuLinks returns the name of the XML element that links GPUs: "xgmi" under RCCL's rules, else "nvlink".
func (d *draft) gpuLinks() string {
	if len(d.rules.Topo.XGMI) > 0 {
		return "xgmi"
	}
	return "nvlink"
}

// linkRate returns the rate of one link of a GPU or its device to others, GB/s.
func (d *draft) linkRate(v *vertex) units.GBps {
	arch := ""
	if v.Kind == DEV {
		arch = v.Dev.Arch
	} else {
		arch = v.GPU.Arch
	}
	if len(d.rules.Topo.XGMI) > 0 {
		return d.rules.Topo.XGMIRate(arch)
	}
	return d.rules.Topo.NVLink(v.sm())
}

// addGIN adds the port of a net for transfers that GPUs start
// (graph/topo.cc:404 of v2.29.7).
func (d *draft) addGIN(e *Element, nic *vertex, host, dev int) {
	v := d.add(GIN, ident(host, int64(dev)), e)
	bw := float32(view.NetSpeed(e))
	connect(nic, v, LinkNET, bw)
	connect(v, nic, LinkNET, bw)
}

// MaxNVLinks returns the number of NVLinks that NCCL queries on a GPU of compute capability sm (xml.cc:789).
func MaxNVLinks(sm int) int {
	switch {
	case sm < 60:
		return 0
	case sm < 70:
		return 4
	case sm < 80:
		return 6
	case sm < 90:
		return 12
	}
	return 18
}

package gpu

import "github.com/simccl/simccl/sim/rdma"

// NVSwitch90 is a machine of sm_90 GPUs behind NVSwitch, measured on 4 x H200
// (driver 580, CUDA 13, NCCL 2.28.9), CUDA-graph replay, one process a GPU.
func NVSwitch90() Class {
	return Class{
		Name:       "nvswitch-sm90",
		Source:     "fitted to every second size measured on 4 x H200 (2026-11)",
		Sure:       0.07,
		KernelGap:  [3]float64{4.051, 7.54, 8.777},
		P2PGap:     4.99,
		HostLaunch: 4.1,
		Flag:       0.551,
		LinkEff:    0.99,
		PCIEff:     1.12, // estimated: Gen5 x16 moves 53 to 55 GB/s where NCCL reckons with 48
		HostHop:    1.18,
		HostRate:   25, // with HostHop from all_reduce with NCCL_P2P_DISABLE=1
		LinkShare:  [3]float64{0.497, 0.9375, 1},
		Simple: SimpleCost{
			PerByte: 3.211e-3, Load: 0.542, Store: 2.035, Local: 2.369,
			Own:   0.7, // estimated: send/recv of H100 over one channel reaches 25 GB/s (public tables)
			Pack8: 1.1, Pack4: 1.104, Pack2: 1.8, Pack1: 2.556,
			Saturation: 0.125, Slice: 0.508, PerThreads: 0.508, SliceLocal: 0.755, Drain: 1.11, Post: 2.11, Fence: 1.09,
		},
		LL:     LLCost{Trip: TripCost{Base: 0.008, Recv: 0.225, HBM: 0.139, Send: 0.127, Load: 0.0004, Store: 0.213, Skew: 0.103}, First: 1.12, Hop: 0.63, Op: 0.057},
		LL128:  LL128Cost{Trip: TripCost{Base: 0.308, Recv: 0.316, HBM: 0.023, Send: 0.619, Load: 0.025, Store: 0.384, Skew: 1.119}, First: 0.041, Hop: 1.153, Op: 1.771},
		Memory: MemoryCost{L2: 50e6, L2Knee: 0.65},
		Jitter: JitterCost{Slice: 0.074, Op: 0.157, Channel: 0.015},
		Net:    rdma.IB400(),
	}
}

// scaled returns a class estimated from the measured one: slow stretches what
// an SM does (clock and issue rate), far what crosses the fabric.
func scaled(name, source string, sure, slow, far float64) Class {
	c := NVSwitch90()
	c.Name, c.Source, c.Sure = name, source, sure
	for i := range c.KernelGap {
		c.KernelGap[i] *= slow
	}
	c.P2PGap *= slow
	c.Flag *= far
	c.Simple.PerByte *= slow
	c.Simple.Slice *= slow
	c.Simple.PerThreads *= slow
	c.Simple.SliceLocal *= slow
	c.Simple.Drain *= (slow + far) / 2
	c.Simple.Post *= (slow + far) / 2
	c.LL.Trip.scale(slow, far)
	c.LL.Hop *= far
	c.LL128.Trip.scale(slow, far)
	c.LL128.Hop *= far
	c.LL128.Op *= slow
	return c
}

func (t *TripCost) scale(slow, far float64) {
	t.Base *= slow
	t.Recv *= far
	t.HBM *= far
	t.Send *= slow
	t.Load *= slow
	t.Store *= slow
	t.Skew *= slow
}

// NVSwitch80 is sm_80 behind NVSwitch: A100 at 1.41 GHz against 1.98 GHz.
func NVSwitch80() Class {
	c := scaled("nvswitch-sm80", "estimated from nvswitch-sm90 by SM clock, L2 from the spec sheet", 0.2, 1.3, 1.15)
	c.Memory.L2 = 40e6
	c.PCIEff = 1.04 // Gen4 x16: 25 GB/s where NCCL reckons with 24
	c.Net = rdma.IB200()
	return c
}

// Mesh80 is sm_80 with direct NVLinks between GPUs: no switch to cross.
func Mesh80() Class {
	c := NVSwitch80()
	c.Name, c.Source, c.Sure = "mesh-sm80", "estimated from nvswitch-sm80 without the switch's latency", 0.25
	c.Flag -= 0.1
	c.LL.Hop -= 0.1
	c.LL128.Hop -= 0.1
	return c
}

// Mesh70 is sm_70 with direct NVLinks: V100 at 1.53 GHz, 6 MB of L2.
func Mesh70() Class {
	c := scaled("mesh-sm70", "estimated from nvswitch-sm90 by SM clock and width, L2 from the spec sheet", 0.3, 1.7, 1.2)
	c.Memory.L2 = 6e6
	c.HostRate = 6 // estimated: PCIe Gen3
	c.PCIEff = 1
	c.Net = rdma.IB200()
	return c
}

// NVSwitch70 is sm_70 behind NVSwitch (DGX-2).
func NVSwitch70() Class {
	c := Mesh70()
	c.Name = "nvswitch-sm70"
	c.Flag += 0.1
	return c
}

// Mesh90 is sm_90 with direct NVLinks (GH200 and four-GPU boards).
func Mesh90() Class {
	c := NVSwitch90()
	c.Name, c.Source, c.Sure = "mesh-sm90", "estimated from nvswitch-sm90 without the switch's latency", 0.15
	c.Flag -= 0.1
	c.LL.Hop -= 0.1
	c.LL128.Hop -= 0.1
	return c
}

// NVSwitch100 is sm_100 behind NVSwitch: wider links, more L2.
func NVSwitch100() Class {
	c := scaled("nvswitch-sm100", "estimated from nvswitch-sm90, links and L2 from the spec sheet", 0.2, 0.95, 1)
	c.Memory.L2 = 126e6
	return c
}

// PCIe is GPUs that reach each other over PCIe only; slow is against sm_90.
func PCIe(sm int) Class {
	slow, l2 := 1.2, 40e6
	if sm >= 89 {
		slow, l2 = 1.0, 72e6
	}
	c := scaled("pcie", "estimated: kernels as sm_90 by clock, stores and flags over PCIe", 0.3, slow, 1.6)
	c.Memory.L2 = l2
	c.PCIEff = 0.9
	c.HostRate = 12 // estimated: Gen4 x16, as Gen5 was measured
	c.Net = rdma.IB200()
	return c
}

// ClassFor returns the class of a machine by compute capability (90 for
// sm_90) and by how its GPUs are joined.
func ClassFor(sm int, nvlink, nvswitch bool) Class {
	switch {
	case !nvlink:
		return PCIe(sm)
	case sm >= 100:
		return NVSwitch100()
	case sm >= 90 && nvswitch:
		return NVSwitch90()
	case sm >= 90:
		return Mesh90()
	case sm >= 80 && nvswitch:
		return NVSwitch80()
	case sm >= 80:
		return Mesh80()
	case nvswitch:
		return NVSwitch70()
	}
	return Mesh70()
}

package gpu

// NVSwitch90 is a machine of sm_90 GPUs behind NVSwitch, measured on 4 x H200
// (driver 580, CUDA 13, NCCL 2.28.9), CUDA-graph replay, one process a GPU.
func NVSwitch90() Class {
	return Class{
		Name:       "nvswitch-sm90",
		Source:     "fitted to every second size measured on 4 x H200 (2026-11)",
		Sure:       0.07,
		KernelGap:  [3]float64{4.0, 8.6, 9.0},
		HostLaunch: 4.1,
		Flag:       0.743,
		LinkEff:    0.99,
		PCIEff:     1,
		LinkShare:  [3]float64{0.5, 0.9375, 1},
		Simple: SimpleCost{
			PerByte: 3.74e-3, LocalStore: 2,
			Pack8: 1.37, Pack4: 1.53, Pack2: 2.2, Pack1: 4,
			Burst: 1.35, Slice: 1.03, PerThreads: 0.94, Post: 2.18, Fence: 0.92,
		},
		LL:     LLCost{Trip: 0.349, Store: 0.22, HBM: 0.11, First: 0.34, Hop: 0.70, Op: 0.05},
		LL128:  LL128Cost{Trip: 1.66, Hop: 0.74, Op: 1.82},
		Memory: MemoryCost{L2: 50e6, L2Knee: 0.4},
		Jitter: JitterCost{Slice: 0.14, Channel: 0.028},
	}
}

// ClassFor returns the class of a machine by compute capability (90 for
// sm_90) and how its GPUs are joined.
func ClassFor(sm int, nvlink, nvswitch bool) Class {
	return NVSwitch90()
}

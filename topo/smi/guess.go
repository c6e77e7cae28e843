package smi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/machine"
)

// guess chooses kinds that are not given so that they agree with the matrix, and adds a Fact for each. It
// also adds a Fact for a given kind that disagrees.
func (m *Matrix) guess(s *machine.Spec, k Kinds) error {
	fact := func(of, format string, args ...any) {
		s.Facts = append(s.Facts, machine.Fact{Of: of, Source: fmt.Sprintf(format, args...), Estimated: true})
	}
	need := m.needs(s)
	if s.GPU.Kind = k.GPU; k.GPU == "" {
		s.GPU.Kind = m.gpuOf(need)
		fact("gpu", "the kind is taken for %s, of %s; the matrix does not say it, --gpu-kind does",
			s.GPU.Kind, need)
	}
	has, coherent, known := machine.GPULinks(s.GPU.Kind)
	switch {
	case known && has < need.links && k.GPU == "":
		return m.fail(need.gpu, 0, "GPU%d has %d NVLinks, more than any kind of GPU that is known; name "+
			"the nearest kind (--gpu-kind) if this is a newer one", need.gpu, need.links)
	case known && has < need.links:
		fact("gpu", "%s has %d NVLinks, the matrix %d of GPU%d: these are kept", s.GPU.Kind, has, need.links,
			need.gpu)
	case known && coherent != need.coherent && need.coherent:
		fact("gpu", "%s has no link to its CPU beside PCIe, but the matrix has a GPU NUMA ID: the memory "+
			"of a GPU behind such a link", s.GPU.Kind)
	}
	if s.CPU = k.CPU; k.CPU == "" {
		nodes := len(s.NUMA)
		for _, n := range s.NUMA {
			nodes = max(nodes, n.ID+1)
		}
		s.CPU = cpuOf(s.GPU.Kind, m.threads(s), nodes)
		fact("cpu", "the kind is taken for %s, which such machines usually have; the matrix does not say "+
			"it, --cpu-kind does", s.CPU)
	}
	if m.GPUs == len(m.Devices) {
		return nil
	}
	if s.NIC.Kind = k.NIC; k.NIC == "" {
		s.NIC.Kind = m.nicOf(s.GPU.Kind)
		fact("nic", "the kind is taken for %s, of %d Mb/s a port, which such machines usually have; the "+
			"matrix does not say it, --nic-kind does", s.NIC.Kind, machine.NICSpeed(s.NIC.Kind))
	}
	for i := m.GPUs; i < len(m.Devices); i++ {
		if m.Devices[i].Name == fmt.Sprintf("NIC%d", i-m.GPUs) {
			fact("nic.names",
				"%s and perhaps others: the text has no NIC legend, names of devices are not known",
				m.Devices[i].Name)
			break
		}
	}
	return nil
}

// needs is the evidence in the matrix for the kind of GPU: the number of NVLinks, NVSwitches, coherent
// memory, and CPUs with Grace's core numbers.
type needs struct {
	links, gpu int // the most NVLinks, of this GPU
	switched   bool
	coherent   bool // its memory is a NUMA node
	grace      bool // its CPU has Grace's cores
}

func (n needs) String() string {
	if n.links == 0 && !n.coherent {
		return "no NVLinks, which nvidia-smi topo -mp leaves out"
	}
	text := fmt.Sprintf("%d NVLinks of a GPU", n.links)
	if n.switched {
		text += " to NVSwitches"
	}
	if n.coherent {
		text += " and a GPU NUMA ID"
	} else if n.grace {
		text += " and CPUs of 72 cores"
	}
	return text
}

func (m *Matrix) needs(s *machine.Spec) needs {
	each := m.sums()
	if s.NVLink.Switch {
		each = m.most()
	}
	n := needs{links: slices.Max(each), switched: s.NVLink.Switch}
	n.gpu = slices.Index(each, n.links)
	n.grace = len(s.NUMA) > 1
	for i, numa := range s.NUMA {
		n.grace = n.grace && (numa.Cores == "" && i > 0 || grace[numa.Cores])
	}
	for i := range m.GPUs {
		n.coherent = n.coherent || m.Devices[i].Memory != ""
	}
	return n
}

// grace lists the core ranges of Grace CPUs, 72 cores without hyper-threads each. Ranges of x86 CPUs differ,
// as their second threads are numbered after the cores of all sockets.
var grace = map[string]bool{"0-71": true, "72-143": true, "144-215": true, "216-287": true}

// gpuOf returns the kind of GPU that matches the evidence.
func (m *Matrix) gpuOf(n needs) string {
	single := true // links join pairs alone
	for i, sum := range m.sums() {
		single = single && sum == m.most()[i]
	}
	switch {
	case (n.coherent || n.grace && n.links > 0) && m.GPUs > m.localities():
		return "gb200"
	case n.coherent || n.grace && n.links > 0:
		return "gh200"
	case n.links == 0:
		return "l40s"
	case n.links == 4 && single:
		return "a6000"
	case n.switched && n.links <= 6:
		return "v100-sxm3"
	case n.links <= 6:
		return "v100-sxm2"
	case n.links <= 8:
		return "h800-sxm"
	case n.links <= 12:
		return "a100-sxm"
	}
	return "h100-sxm"
}

// localities returns the number of different NUMA nodes (or core ranges) with GPUs.
func (m *Matrix) localities() int {
	seen := map[string]bool{}
	for i := range m.GPUs {
		seen[m.locality(i)] = true
	}
	return len(seen)
}

// cpuOf returns the usual kind of CPU for a kind of GPU in a host of `nodes` NUMA nodes, the largest with
// `threads` hardware threads.
func cpuOf(gpu string, threads, nodes int) string {
	usual := "sapphire-rapids" // at most 60 cores
	switch {
	case strings.HasPrefix(gpu, "g"):
		return "grace"
	case strings.HasPrefix(gpu, "v100") && threads <= 48:
		return "broadwell"
	case strings.HasPrefix(gpu, "v100") && threads <= 56:
		return "cascade-lake"
	case strings.HasPrefix(gpu, "v100"), strings.HasPrefix(gpu, "a100"):
		return "rome"
	case strings.HasPrefix(gpu, "b"):
		usual = "emerald-rapids" // at most 64
	}
	if threads > 128 || nodes > 4 {
		return "genoa"
	}
	return usual
}

// threads returns the largest number of threads of a NUMA node.
func (m *Matrix) threads(s *machine.Spec) int {
	most := 0
	for _, n := range s.NUMA {
		count := 0
		for part := range strings.SplitSeq(n.Cores, ",") {
			lo, hi, _ := strings.Cut(part, "-")
			a, errA := strconv.Atoi(lo)
			if b, err := strconv.Atoi(cmp.Or(hi, lo)); err == nil && errA == nil {
				count += b - a + 1
			}
		}
		most = max(most, count)
	}
	return most
}

// nicOf returns the kind of NIC by the device names, else the usual one for a kind of GPU.
func (m *Matrix) nicOf(gpu string) string {
	for i := m.GPUs; i < len(m.Devices); i++ {
		name := m.Devices[i].Name
		switch {
		case strings.HasPrefix(name, "rdmap"), strings.HasPrefix(name, "efa"):
			return "efa"
		case strings.HasPrefix(name, "cxi"):
			return "slingshot"
		}
	}
	switch {
	case strings.HasPrefix(gpu, "v100"):
		return "connectx-4"
	case strings.HasPrefix(gpu, "a100"), strings.HasPrefix(gpu, "l40"):
		return "connectx-6"
	}
	return "connectx-7"
}

// switchOf returns the kind of PCIe switch for a GPU's generation. NCCL merges two stacked Broadcom Gen4
// switches into one node (topo.cc, ncclTopoFlattenBcmSwitches), so stacked switches are of another kind.
func switchOf(gpu string, stacked bool) string {
	switch {
	case strings.HasPrefix(gpu, "v100"):
		return "plx-gen3"
	case strings.HasPrefix(gpu, "a100"), strings.HasPrefix(gpu, "l40"), strings.HasPrefix(gpu, "rtx"),
		strings.HasPrefix(gpu, "a10"):
		if stacked {
			return "virtual-gen4"
		}
		return "broadcom-gen4"
	}
	return "broadcom-gen5"
}

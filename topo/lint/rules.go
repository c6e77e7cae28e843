package lint

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
)

// cpus checks NUMA numbers, affinities, and that NCCL recognises the CPU's vendor and model.
func (c *checker) cpus() {
	type key struct{ host, numa string }
	seen := map[key]string{}
	list := c.all["cpu"]
	hashes := 0
	for _, it := range list {
		numa, _ := it.e.Get("numaid")
		if numa == "-1" {
			c.say(Note, "numaid", it, "numaid",
				"numaid is -1: the machine shows no NUMA domains, so every device is as far as any other",
				"give the virtual machine the host's NUMA layout, or write the real domains")
		}
		k := key{it.host, numa}
		if first, dup := seen[k]; dup {
			c.say(Warning, "numaid", it, "numaid", fmt.Sprintf("numaid %s is %s already: NCCL keeps one "+
				"table of paths for both, and the second CPU is never found", termtext.Short(numa, 0), first),
				"give every <cpu> of a host its own number")
		}
		seen[k] = it.path
		if _, ok := it.e.Get("host_hash"); ok {
			hashes++
		}
		c.cpuKind(it)
	}
	if hashes > 0 && hashes < len(list) {
		for _, it := range list {
			if it.host == "" {
				c.say(Warning, "host", it, "",
					"no host_hash while other CPUs have one: NCCL takes it for another host",
					"write the same host_hash on every <cpu> of a host")
			}
		}
	}
	c.affinities(list)
}

func (c *checker) cpuKind(it item) {
	arch, ok := it.e.Get("arch")
	if !ok {
		c.say(Note, "cpu", it, "", "no arch: NCCL writes that of the machine it runs on, here x86_64",
			`write arch="x86_64" or arch="arm64"`)
		arch = "x86_64"
	}
	if arch != "x86_64" {
		return
	}
	vendor, ok := it.e.Get("vendor")
	if !ok {
		c.say(Note, "cpu", it, "", "no vendor: NCCL writes that of the machine it runs on, here AuthenticAMD",
			`write vendor="GenuineIntel" or vendor="AuthenticAMD"`)
		return
	}
	_, f := it.e.Get("familyid")
	_, m := it.e.Get("modelid")
	if model := it.e.Int("modelid", 0); !c.amd && vendor == "GenuineIntel" &&
		(model == 173 || model == 174) &&
		len(c.all["cpu"]) > 1 {
		c.say(Note, "cpu", it, "modelid", "Granite Rapids: NCCL before 2.31.2 takes it for Sapphire "+
			"Rapids, with 22 GB/s between sockets in place of 40",
			"use a later NCCL where GPUs of both sockets are used, or write modelid=\"207\" in a file for "+
				"NCCL_TOPO_FILE")
	}
	if vendor == "GenuineIntel" && (!f || !m) {
		c.say(Warning, "cpu", it, "", "an Intel CPU without familyid or modelid: treated as one before "+
			"Skylake, with 6 GB/s between sockets", "write both, as /proc/cpuinfo has them")
	}
}

// affinities compares the CPUs' core masks: equal, overlapping, or in another
// order than their numbers.
func (c *checker) affinities(list []item) {
	type domain struct {
		it   item
		mask []byte // the lowest cores last
		numa int
	}
	byHost := map[string][]domain{}
	var hosts []string
	for _, it := range list {
		text, ok := it.e.Get("affinity")
		if !ok {
			continue
		}
		mask, err := coreMask(text)
		if err != nil {
			c.say(Warning, "affinity", it, "affinity", fmt.Sprintf("affinity %s is no core mask",
				termtext.Quote(text, 0)),
				"write hexadecimal groups, as /sys/devices/system/node/node0/cpumap")
			continue
		}
		if byHost[it.host] == nil {
			hosts = append(hosts, it.host)
		}
		byHost[it.host] = append(byHost[it.host], domain{it, mask, it.e.Int("numaid", 0)})
	}
	for _, h := range hosts {
		ds := byHost[h]
		sort.SliceStable(ds, func(i, j int) bool { return ds[i].numa < ds[j].numa })
		for i := 1; i < len(ds); i++ {
			a, b := ds[i-1], ds[i]
			switch {
			case lowest(b.mask) < 0:
				c.say(Warning, "affinity", b.it, "affinity", "an empty core mask", "write the domain's cores")
			case overlap(a.mask, b.mask):
				c.say(Warning, "affinity", b.it, "affinity", fmt.Sprintf("numaid %d and %d share cores",
					a.numa, b.numa),
					"write each domain's own cores, as /sys/devices/system/node/node*/cpumap")
			case lowest(b.mask) < lowest(a.mask):
				c.say(Warning, "numaid", b.it, "numaid",
					fmt.Sprintf("numaid %d has lower cores than numaid %d: the two are perhaps swapped",
						b.numa, a.numa), "compare with lscpu and swap numaid or affinity")
			}
		}
	}
}

// coreMask reads hexadecimal groups.
func coreMask(text string) ([]byte, error) {
	text = strings.ReplaceAll(text, ",", "")
	if text == "" {
		return nil, hex.ErrLength
	}
	return hex.DecodeString(strings.Repeat("0", len(text)%2) + text)
}

// lowest is the lowest core of a mask, -1: it has none.
func lowest(mask []byte) int {
	for i := range mask {
		if b := mask[len(mask)-1-i]; b != 0 {
			return 8*i + bits.TrailingZeros8(b)
		}
	}
	return -1
}

// overlap says whether two masks share a core.
func overlap(a, b []byte) bool {
	for i := range min(len(a), len(b)) {
		if a[len(a)-1-i]&b[len(b)-1-i] != 0 {
			return true
		}
	}
	return false
}

// busIDs reports bus ids and GPU device numbers that are used twice on a host, and bus ids with upper-case
// letters, which NCCL does not find.
func (c *checker) busIDs() {
	seen := map[string]string{}
	for _, it := range c.all["pci"] {
		id, _ := it.e.Get("busid")
		k := fmt.Sprintf("%s %x", it.host, cnum.BusID(id))
		if first, dup := seen[k]; dup {
			c.say(Error, "busid", it, "busid",
				fmt.Sprintf("busid %s is %s already: NCCL joins links to the first", termtext.Short(id, 0),
					first), "give every device its own address")
		}
		seen[k] = it.path
		if id != strings.ToLower(id) {
			c.say(Warning, "busid", it, "busid",
				fmt.Sprintf("busid %s has upper case letters, NCCL looks for lower case",
					termtext.Short(id, 0)), "write "+strings.ToLower(termtext.Short(id, 0)))
		}
	}
	devs := map[string]string{}
	for _, it := range c.all["gpu"] {
		if d, ok := it.e.Get("dev"); ok {
			k := it.host + " " + d
			if first, dup := devs[k]; dup {
				c.say(Warning, "dev", it, "dev", fmt.Sprintf("dev %s is %s already", termtext.Short(d, 0),
					first), "number the GPUs of a host as CUDA does")
			}
			devs[k] = it.path
		}
	}
}

// links checks that PCI links have a width and a speed that NCCL can read.
func (c *checker) links() {
	for _, it := range c.all["pci"] {
		w, hasW := it.e.Get("link_width")
		s, hasS := it.e.Get("link_speed")
		wide := it.e.Int("link_width", 0)
		bw, known := decl.PCIBandwidth(wide, s)
		switch {
		case (hasW && w == "") || !hasW || wide == 0:
			c.say(Warning, "width", it, "link_width", fmt.Sprintf("link_width is %s, NCCL takes 16 lanes",
				termtext.Quote(w, 0)), "write the lanes, as max_link_width in sysfs")
		case wide < 0 || wide > 32:
			c.say(Warning, "width", it, "link_width", fmt.Sprintf("%d lanes", wide),
				"a PCIe link has 1 to 16 lanes")
		}
		if !hasS || !known {
			c.say(Warning, "speed", it, "link_speed",
				fmt.Sprintf("link_speed %s is unknown, NCCL takes Gen3 (%g GB/s)", termtext.Quote(s, 0),
					float32(bw)), `write for example "32.0 GT/s PCIe"`)
		}
	}
}

// narrowUplink is the share of the bandwidth below a PCI link under which its own is suspect. Servers'
// switches legitimately share an uplink among up to eight devices.
const narrowUplink = 0.1

// uplinks reports PCI links far narrower than the devices below them, such as the emulated ports of virtual
// machines, which declare 2.5 GT/s x1 whatever the real link is.
func (c *checker) uplinks() {
	for _, it := range c.all["pci"] {
		below, devices := devicesBelow(it.e)
		if devices == 0 {
			continue
		}
		speed, _ := it.e.Get("link_speed")
		bw, known := decl.PCIBandwidth(it.e.Int("link_width", 0), speed)
		if !known || float32(bw) >= narrowUplink*below {
			continue
		}
		c.say(Warning, "uplink", it, "link_speed",
			fmt.Sprintf("a PCIe link of %.2g GB/s above %s of %g GB/s: NCCL plans all that crosses it "+
				"(sockets, NICs without GPUDirect RDMA, GPUs of other switches) with %.2g GB/s",
				float32(bw), numbered(devices, "device"), below, float32(bw)),
			"an emulated port: write the real one's speed and width in a file for NCCL_TOPO_FILE, or set "+
				"them in the virtual machine (x-speed, x-width of QEMU's pcie-root-port); a real one: find "+
				"why it trained so slowly, or whether it slept")
	}
}

// devicesBelow counts the GPUs and NICs behind the port of a switch, and adds up their
// links, GB/s; a device's own link counts none, and none does a GPU that has C2C to its CPU.
func devicesBelow(port *topo.Element) (gbps float32, n int) {
	for _, child := range port.Children {
		if child.Name != "pci" {
			continue
		}
		sum, devices := devicesBelow(child)
		if gpu := child.Child("gpu"); gpu != nil && gpu.Child("c2c") != nil {
			continue
		}
		if class, _ := child.Get("class"); devices == 0 && (child.Child("gpu") != nil ||
			child.Child("nic") != nil || strings.HasPrefix(class, "0x03") ||
			strings.HasPrefix(class, "0x02")) {
			speed, _ := child.Get("link_speed")
			bw, _ := decl.PCIBandwidth(child.Int("link_width", 0), speed)
			sum, devices = float32(bw), 1
		}
		gbps, n = gbps+sum, n+devices
	}
	return gbps, n
}

// generation returns the PCIe speed, GB/s at 16 lanes, that a GPU's chip has.
func generation(sm int) float32 {
	switch {
	case sm >= 90:
		return 48
	case sm >= 80 && sm != 87:
		return 24
	}
	return 12
}

// gpuAttributes checks that each GPU has a compute capability and a PCIe link of its chip's generation, and
// notes GPUs of different chips.
func (c *checker) gpuAttributes() {
	sms := map[int]string{}
	for _, it := range c.all["gpu"] {
		sm := it.e.Int("sm", 0)
		if c.amd {
			c.amdGPU(it)
			continue
		}
		if _, ok := it.e.Get("sm"); !ok {
			c.say(Error, "gpu", it, "", "no sm: the compute capability is unknown",
				`write for example sm="90"`)
		}
		if it.pci != nil {
			speed, ok := it.pci.Get("link_speed")
			bw, known := decl.PCIBandwidth(it.pci.Int("link_width", 0), speed)
			if ok && known && sm > 0 && float32(bw) < generation(sm) && sm != 121 {
				c.say(Note, "gpu-link", it, "", fmt.Sprintf("its PCIe link has %g GB/s, an sm_%d chip can %g",
					float32(bw), sm, generation(sm)),
					"check link_speed and link_width; a sleeping link shows less")
			}
		}
		c.peerless(it)
		sms[sm] = it.path
	}
	if len(sms) > 1 {
		c.found = append(c.found, Finding{Note, "gpu", c.spec.Root.Origin, "system",
			fmt.Sprintf("%d different compute capabilities: NCCL tunes for the lowest", len(sms)),
			"run equal GPUs together"})
	}
}

// geForces are GeForce RTX 3080, 3090, 3090 Ti, 4080, 4090, 4090 D and 5090 by PCI device: NVIDIA's driver
// lets none of them read another GPU's memory over PCIe (cudaDeviceCanAccessPeer is 0).
var geForces = []string{"0x2206", "0x2204", "0x2203", "0x2704", "0x2684", "0x2685", "0x2b85"}

// peerless finds GeForce GPUs behind a PCIe switch: by the file they could exchange through it.
func (c *checker) peerless(it item) {
	linked := func(e *decl.Element) bool { return e.Name == "nvlink" }
	if it.pci == nil || slices.ContainsFunc(it.e.Children, linked) {
		return
	}
	device, _ := it.pci.Get("device")
	if it.up != nil && slices.Contains(geForces, device) {
		c.say(Warning, "p2p", it, "", "a GeForce behind a PCIe switch: NVIDIA's driver gives it no peer "+
			"access, so NCCL exchanges through host memory", "set NCCL_P2P_DISABLE=1, which is the same here")
	}
}

// amdGPU checks that the link of a GPU of AMD is of its architecture's generation: PCIe 4 of gfx90a, 5 from
// gfx942 on, where the GPU is not on a processor's package.
func (c *checker) amdGPU(it item) {
	arch, _ := it.e.Get("gcn")
	most := map[string]float32{"gfx90a": 24, "gfx942": 48, "gfx950": 48}[arch]
	if it.pci == nil || most == 0 {
		return
	}
	speed, ok := it.pci.Get("link_speed")
	bw, known := decl.PCIBandwidth(it.pci.Int("link_width", 0), speed)
	if ok && known && float32(bw) < most {
		c.say(Note, "gpu-link", it, "", fmt.Sprintf("its PCIe link has %g GB/s, a %s GPU can %g", float32(bw),
			arch, most), "check link_speed and link_width; a sleeping link shows less")
	}
}

// nets checks the names and speeds of nets, and that the PCIe link is as fast as the port.
func (c *checker) nets() {
	seen := map[string]string{}
	for _, it := range c.all["net"] {
		name, ok := it.e.Get("name")
		switch first, dup := seen[it.host+" "+name]; {
		case !ok:
			c.say(Warning, "net", it, "", "no name: NCCL cannot match it with a device and drops it",
				`write name="mlx5_0"`)
		case dup:
			c.say(Note, "net", it, "name", fmt.Sprintf("net %s is %s already: NCCL keeps the first",
				termtext.Short(name, 0), first), "remove it")
		}
		seen[it.host+" "+name] = it.path
		mbps := it.e.Int("speed", 0)
		if mbps <= 0 {
			c.say(Warning, "net", it, "speed", "no speed: NCCL takes 10 Gb/s", `write Mb/s, speed="400000"`)
			continue
		}
		if it.pci == nil {
			continue
		}
		speed, _ := it.pci.Get("link_speed")
		bw, _ := decl.PCIBandwidth(it.pci.Int("link_width", 0), speed)
		if need := float32(mbps) / 8000; float32(bw)*1.06 < need {
			c.say(Warning, "net-link", it, "speed", fmt.Sprintf("a port of %g GB/s on a PCIe link of %g GB/s",
				need, float32(bw)), "check link_speed and link_width of its <pci>")
		}
	}
}

// LeftOut is the rule for GPUs that the file declares only as PCI devices, while it describes others in full:
// here they are no ranks, on the machine they would be.
const LeftOut = "left-out"

// places finds PCI devices that a template names without saying what it is.
func (c *checker) places() {
	var gpus, nics, lost []item
	for _, it := range c.all["pci"] {
		class, _ := it.e.Get("class")
		switch {
		case strings.HasPrefix(class, "0x0302") && it.e.Child("gpu") == nil && len(c.all["gpu"]) > 0:
			lost = append(lost, it)
		case c.isGPU(class) && it.e.Child("gpu") == nil:
			gpus = append(gpus, it)
		case strings.HasPrefix(class, "0x02") && it.e.Child("nic") == nil:
			nics = append(nics, it)
		}
	}
	const remedy = `write <gpu dev="0" sm="90" gdr="1"/> into each`
	if len(lost) > 0 {
		c.say(Warning, LeftOut, lost[0], "", fmt.Sprintf("%d of %d GPUs are left out, this is the first: "+
			"its <pci> has no <gpu>, which NCCL detects on the machine", len(lost), len(lost)+
			len(c.all["gpu"])), remedy)
	}
	if len(gpus) > 0 {
		c.say(Note, "template", gpus[0], "", fmt.Sprintf("%d places of GPUs without <gpu>, this is the "+
			"first: NCCL fills them in on the machine, here they count for nothing", len(gpus)), remedy)
	}
	if len(nics) > 0 {
		c.say(Note, "template", nics[0], "",
			fmt.Sprintf("%d places of NICs without <nic><net/></nic>, this is the first: here they count "+
				"for nothing", len(nics)),
			`write <nic><net name="mlx5_0" speed="400000" gdr="1"/></nic> into each`)
	}
}

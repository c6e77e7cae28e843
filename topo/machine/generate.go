package machine

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
)

// virtualSwitch is the bus id that NVML gives for an NVSwitch that the host does
// not see on its PCI bus (NVIDIA/nccl v2.28.9 xml.cc:660).
const virtualSwitch = "fffffff:ff:ff.0"

// hostHash is a placeholder: files of equal hosts have one.
const hostHash = "0x1234567800000000"

// Generate returns the tree of one host as NCCL_TOPO_DUMP_FILE has it. The error
// names the member of the Spec that is wrong.
func (s *Spec) Generate() (*decl.Element, error) {
	if p := s.check(); p != nil {
		return nil, p
	}
	g := &generator{spec: s, buses: map[int]int{}, ports: map[*NIC]int{}, used: map[int]bool{}}
	g.gpus, g.bus = make([]*decl.Element, s.GPUs()), make([]string, s.GPUs())
	root := element("system", "version", "1")
	for i, n := range s.NUMA {
		cpu := g.cpu(i, n)
		for k := range s.Groups {
			if grp := &s.Groups[k]; grp.NUMA == n.ID {
				g.given, g.bridge = grp.Bus, grp.Bridge
				g.group(cpu, grp)
			}
		}
		root.Append(cpu)
	}
	g.connect()
	return root, nil
}

// generator builds the tree of a Spec and numbers devices as it creates them.
type generator struct {
	spec   *Spec
	gpus   []*decl.Element // <gpu>, by number
	bus    []string        // of each GPU
	made   int             // GPUs so far
	nics   int             // ports
	ports  map[*NIC]int    // of each kind
	used   map[int]bool    // numbers of ports
	buses  map[int]int     // PCI buses used, by index of the NUMA node and host bridge
	given  []string        // bus ids that the group still has
	numa   int
	bridge int
}

func element(name string, attrs ...string) *decl.Element {
	e := &decl.Element{Name: name}
	for i := 0; i < len(attrs); i += 2 {
		e.Set(attrs[i], attrs[i+1])
	}
	return e
}

func (g *generator) cpu(i int, n NUMA) *decl.Element {
	g.numa = i
	k := cpuKinds[g.spec.CPU]
	e := element("cpu", "host_hash", hostHash, "numaid", strconv.Itoa(n.ID))
	if mask, _ := affinity(n.Cores); mask != "" {
		e.Set("affinity", mask)
	}
	e.Set("arch", k.arch)
	if k.vendor != "" {
		e.Set("vendor", k.vendor)
		e.Set("familyid", strconv.Itoa(k.family))
		e.Set("modelid", strconv.Itoa(k.model))
	}
	return e
}

// group appends all copies of a group's subtree.
func (g *generator) group(on *decl.Element, grp *Group) {
	grp = grp.parts()
	for range max(grp.Times, 1) {
		at := on
		for _, kind := range grp.Switches {
			at = child(at, pci(switchKinds[kind], g.busID(), ""))
		}
		for _, nics := range []bool{grp.NICsFirst, !grp.NICsFirst} {
			for range grp.NICs {
				if nics {
					g.nic(at, g.spec.nic(grp))
				}
			}
			for range grp.GPUs {
				if !nics {
					g.gpu(at)
				}
			}
		}
		for i := range grp.Below {
			g.group(at, &grp.Below[i])
		}
	}
}

func child(of, e *decl.Element) *decl.Element {
	of.Append(e)
	return e
}

// busID returns the next of the group's bus ids, or generates one: each NUMA node has its own range of the
// 256 buses, each of its host bridges a PCI domain, each bus at most 32 devices.
func (g *generator) busID() string {
	if len(g.given) > 0 {
		id := g.given[0]
		g.given = g.given[1:]
		return id
	}
	span := 256 / len(g.spec.NUMA)
	for {
		key := g.numa<<8 | g.bridge
		n := g.buses[key]
		g.buses[key]++
		bus, dev := n%(span-1), n/(span-1)
		id := fmt.Sprintf("%04x:%02x:%02x.0", g.bridge+dev/32<<8, g.numa*span+1+bus, dev%32)
		if !slices.ContainsFunc(g.spec.Groups, func(grp Group) bool { return slices.Contains(grp.Bus, id) }) {
			return id
		}
	}
}

// pci returns a function's element; gen replaces its own link.
func pci(id pciID, bus, gen string) *decl.Element {
	gen = cmp.Or(gen, id.gen)
	speed, width, _ := link(gen)
	if gen == unknownLink {
		speed, width = "", "0"
	}
	return element("pci", "busid", bus, "class", id.class, "vendor", id.vendor, "device", id.device,
		"subsystem_vendor", id.subVendor, "subsystem_device", id.subDevice, "link_speed", speed, "link_width",
		width)
}

func (g *generator) gpu(on *decl.Element) {
	k, dev := gpuKinds[g.spec.GPU.Kind], g.made
	if g.made++; len(g.spec.GPU.Devs) > 0 {
		dev = g.spec.GPU.Devs[dev]
	}
	n := strconv.Itoa(dev)
	e := element("gpu", "dev", n, "sm", strconv.Itoa(k.sm), "rank", n, "gdr", flag(!g.spec.GPU.NoGDR))
	g.gpus[dev], g.bus[dev] = e, g.busID()
	child(on, pci(k.pci, g.bus[dev], g.spec.GPU.PCIe)).Append(e)
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func (g *generator) nic(on *decl.Element, n *NIC) {
	k := nicKinds[n.Kind]
	if !n.Virtual {
		on = child(on, pci(k.pci, g.busID(), n.PCIe))
	}
	nic := child(on, element("nic"))
	latency, speed := k.latency, k.speed
	if n.Latency > 0 {
		latency = n.Latency
	}
	if n.Speed > 0 {
		speed = n.Speed
	}
	for port := range max(n.Ports, 1) {
		dev := n.number(g.ports[n], g.used)
		nic.Append(element("net", "name", n.portName(g.ports[n], dev), "dev", strconv.Itoa(dev), "latency",
			strconv.FormatFloat(latency, 'g', -1, 64),
			"speed", strconv.Itoa(speed), "port", strconv.Itoa(port+1), "guid",
			fmt.Sprintf("0x200c%011x", g.nics+1),
			"maxconn", strconv.Itoa(k.maxConn), "gdr", flag(!n.NoGDR && !k.noGDR)))
		g.ports[n]++
		g.used[dev] = true
		g.nics++
	}
}

// portName returns the name of the i-th port of a kind, which has a number.
func (n *NIC) portName(i, dev int) string {
	if len(n.Names) > 0 {
		return n.Names[i]
	}
	pattern := n.Name
	if pattern == "" {
		pattern = nicKinds[n.Kind].name
	}
	return strings.Replace(pattern, "%d", strconv.Itoa(dev), 1)
}

// connect adds NVLinks and links to the CPU to all GPUs.
func (g *generator) connect() {
	k := gpuKinds[g.spec.GPU.Kind]
	for i, e := range g.gpus {
		for _, l := range g.spec.NVLink.of(i, len(g.gpus), k.links) {
			if l.count == 0 {
				continue
			}
			target, class := virtualSwitch, "0x068000"
			switch {
			case l.gpu >= 0:
				target, class = g.bus[l.gpu], "0x030200"
			case l.nvswitch >= 0:
				target = g.spec.NVLink.switchBus(l.nvswitch)
			}
			e.Append(element("nvlink", "target", target, "count", strconv.Itoa(l.count), "tclass", class))
		}
		if k.c2cNo > 0 {
			e.Append(element("c2c", "bw", strconv.Itoa(k.c2cBW), "count", strconv.Itoa(k.c2cNo)))
		}
	}
}

// nvlinks is a bundle of links to a GPU or to a visible NVSwitch; -1 where it is
// not of that kind, both: the virtual target.
type nvlinks struct{ gpu, nvswitch, count int }

// of returns the NVLink elements of GPU i among n: target and number of links each. links is the number of
// links of the kind.
func (l *NVLink) of(i, n, links int) []nvlinks {
	var out []nvlinks
	if l.Links > 0 {
		links = l.Links
	}
	switch {
	case len(l.Each) > 0:
		return []nvlinks{{-1, -1, l.Each[i]}}
	case l.Switch && len(l.Counts) == 0:
		return []nvlinks{{-1, -1, links}}
	case l.Switch:
		for s, c := range l.Counts {
			out = append(out, nvlinks{-1, s, c})
		}
	case l.Mesh > 0:
		for j := range n {
			if j != i {
				out = append(out, nvlinks{j, -1, l.Mesh})
			}
		}
	default:
		for _, p := range l.Pairs {
			if p[0] == i {
				out = append(out, nvlinks{p[1], -1, p[2]})
			} else if p[1] == i {
				out = append(out, nvlinks{p[0], -1, p[2]})
			}
		}
		slices.SortFunc(out, func(a, b nvlinks) int { return a.gpu - b.gpu })
	}
	return out
}

func (l *NVLink) switchBus(s int) string {
	if len(l.Bus) > 0 {
		return l.Bus[s]
	}
	return fmt.Sprintf("0000:%02x:00.0", 0xf0+s)
}

// affinity turns ranges of cores into sysfs' mask of 32-bit words, highest first:
// "0-3,36" is "00000010,0000000f".
func affinity(cores string) (string, bool) {
	if cores == "" {
		return "", true
	}
	var words []uint32
	for part := range strings.SplitSeq(cores, ",") {
		lo, hi, span := strings.Cut(part, "-")
		a, err := strconv.ParseUint(lo, 10, 12)
		if err != nil {
			return "", false
		}
		b := a
		if span {
			if b, err = strconv.ParseUint(hi, 10, 12); err != nil || b < a {
				return "", false
			}
		}
		for c := a; c <= b; c++ {
			for uint64(len(words)) <= c/32 {
				words = append(words, 0)
			}
			words[c/32] |= 1 << (c % 32)
		}
	}
	slices.Reverse(words)
	text := fmt.Sprintf("%0*x", (bits.Len32(words[0])+3)/4, words[0])
	for _, w := range words[1:] {
		text += fmt.Sprintf(",%08x", w)
	}
	return text, true
}

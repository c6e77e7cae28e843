package detect

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/topo"
)

// netPort is one port as a net plugin reports it to NCCL.
type netPort struct {
	name    string
	path    string // PCI device in sysfs, "" where there is none
	speed   int    // Mb/s
	port    int
	guid    uint64
	maxConn int
	gdr     bool // NICs reach GPU memory through nvidia_peermem
	dmaBuf  bool // through DMA-BUF, where the GPU's driver has it too
}

// nets lists the ports in the plugin's order: InfiniBand and RoCE where there
// are any, else sockets.
func (m *Host) nets(p Params) ([]netPort, error) {
	if !p.IBDisable {
		if ib := m.ibPorts(p); len(ib) > 0 {
			return ib, nil
		}
	}
	return m.socketPorts(p)
}

// maxHCAs is the largest number of ports that the InfiniBand plugin uses (net_ib.cc:102).
const maxHCAs = 32

// hcas lists RDMA devices in the order of libibverbs. Without a Verbs source it takes sysfs and the kernel's
// order, by device number, which is the same unless devices were renamed. It is empty if libibverbs cannot be
// loaded, as NCCL then has no InfiniBand.
func (m *Host) hcas() []HCA {
	if m.Verbs != nil {
		list, err := m.Verbs()
		if err != nil {
			return nil
		}
		return list
	}
	entries, err := fs.ReadDir(m.Tree, "sys/class/infiniband")
	if err != nil {
		return nil
	}
	var out []HCA
	for _, e := range entries {
		out = append(out, HCA{Name: e.Name(), MaxQP: usualMaxQP})
	}
	slices.SortStableFunc(out, func(a, b HCA) int { return iflist.Compare(a.Name, b.Name) })
	return out
}

// usualMaxQP is assumed for a device whose limit of queue pairs cannot be queried: the limit of ConnectX-6
// and -7.
const usualMaxQP = 131072

// ibPorts lists the active ports of RDMA devices that NCCL_IB_HCA selects (transport/net_ib.cc:711-800).
func (m *Host) ibPorts(p Params) []netPort {
	gdr := m.peerMemory()
	var out []netPort
	for _, d := range m.hcas() {
		dir := "sys/class/infiniband/" + d.Name
		ports, err := fs.ReadDir(m.Tree, dir+"/ports")
		if err != nil {
			continue
		}
		slices.SortStableFunc(ports, func(a, b fs.DirEntry) int { return iflist.Compare(a.Name(), b.Name()) })
		pci := ""
		if r, err := m.Tree.RealPath(dir + "/device"); err == nil {
			pci = mergedFunction(r, p.MergeVFs)
		}
		for _, q := range ports {
			num, at := atoi(q.Name()), dir+"/ports/"+q.Name()
			if !m.usable(at) || !iflist.Listed(p.IBHCA, d.Name, num) || len(out) == maxHCAs {
				continue
			}
			// The port of a card: functions before this one count too
			// (net_ib.cc:533).
			n := netPort{name: d.Name, path: pci, speed: gbps(m.read(at + "/rate")), port: num,
				guid: guid(m.read(dir + "/sys_image_guid")), maxConn: d.MaxQP, gdr: gdr, dmaBuf: d.DMABuf}
			for _, o := range out {
				if pci != "" && o.path == pci {
					n.port++
				}
			}
			out = append(out, n)
		}
	}
	return out
}

// usable reports whether a port is active and uses InfiniBand or Ethernet
// (net_ib.cc:738).
func (m *Host) usable(port string) bool {
	state, _, _ := strings.Cut(m.read(port+"/state"), ":")
	if strings.TrimSpace(state) != "4" { // ACTIVE
		return false
	}
	layer := m.read(port + "/link_layer")
	return layer == "" || layer == "InfiniBand" || layer == "Ethernet"
}

// mergedFunction maps the PCI functions of a multi-port card to one path, with vfs also virtual functions
// (net_ib.cc, ncclIbGetPciPath).
func mergedFunction(p string, vfs bool) string {
	b := []byte(p)
	n := len(b)
	if n < 4 {
		return p
	}
	b[n-1] = '0'
	if vfs {
		b[n-3], b[n-4] = '0', '0'
	}
	return string(b)
}

// gbps converts sysfs' rate, "400 Gb/sec (4X NDR)", to Mb/s; 0 if it cannot be read.
func gbps(rate string) int {
	var v float64
	if _, err := fmt.Sscanf(rate, "%f", &v); err != nil {
		return 0
	}
	return int(v * 1000)
}

// guid reads "b8ce:f603:00d1:1234" as the number that NCCL makes of its bytes:
// network order read on a little-endian machine.
func guid(s string) uint64 {
	v, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	if err != nil {
		return 0
	}
	var out uint64
	for range 8 {
		out, v = out<<8|v&0xff, v>>8
	}
	return out
}

// peerMemory reports whether the kernel lets NICs reach GPU memory
// (net_ib.cc:990, ncclIbGdrSupport).
func (m *Host) peerMemory() bool {
	for _, f := range []string{"sys/kernel/mm/memory_peers/nv_mem/version",
		"sys/kernel/mm/memory_peers/nv_mem_nc/version", "sys/module/nvidia_peermem/version"} {
		if m.read(f) != "" {
			return true
		}
	}
	return false
}

// maxInterfaces is the largest number of interfaces that the socket plugin uses (socket.h:18).
const maxInterfaces = 16

// socketPorts lists the interfaces that NCCL would use (misc/socket.cc:136 and 355), those with an IPv4
// address before those with IPv6.
func (m *Host) socketPorts(p Params) ([]netPort, error) {
	all, err := m.Interfaces()
	if err != nil {
		return nil, err
	}
	lists := []string{"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}
	if len(p.SocketIfname) > 1 {
		lists = []string{p.SocketIfname}
	}
	var ordered []Interface
	for _, v6 := range []bool{false, true} {
		for _, i := range all {
			if v6 && i.V6 && (!i.V4 || p.SocketFamily == "AF_INET6") && p.SocketFamily != "AF_INET" || !v6 &&
				i.V4 && p.SocketFamily != "AF_INET6" {
				ordered = append(ordered, i)
			}
		}
	}
	for _, list := range lists {
		var out []netPort
		for _, i := range ordered {
			if iflist.Listed(list, i.Name, -1) && len(out) < maxInterfaces {
				out = append(out, m.socketPort(i.Name, len(out)))
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	if len(p.SocketIfname) > 1 {
		return nil, &AbsentError{"an interface that NCCL_SOCKET_IFNAME=" + p.SocketIfname + " allows",
			"none with an address"}
	}
	return nil, nil
}

// socketPort returns the socket plugin's view: 10 Gb/s where the driver gives no
// speed (net_socket.cc:80).
func (m *Host) socketPort(name string, dev int) netPort {
	n := netPort{name: name, speed: m.number("sys/class/net/" + name + "/speed"), guid: uint64(dev),
		maxConn: 65536}
	if n.speed <= 0 {
		n.speed = 10000
	}
	if r, err := m.Tree.RealPath("sys/class/net/" + name + "/device"); err == nil && isBusID(path.Base(r)) {
		n.path = r
	}
	return n
}

// net adds a port under its NIC: on its PCI device, else on the first CPU (xml.cc:911 ncclTopoFillNet). A
// second port of the same name only changes the first one's number (topo.cc:1341).
func (b *builder) net(n *netPort, dev int, g *GPU) {
	e, _ := b.find("net", "name", n.name)
	if e == nil {
		if e = b.newNet(n); e == nil {
			return
		}
	}
	gdr := "0"
	if n.gdr || n.dmaBuf && g.DMABuf {
		gdr = "1"
	}
	e.Set("dev", strconv.Itoa(dev))
	for _, kv := range [][2]string{{"latency", "0"}, {"speed", strconv.Itoa(n.speed)},
		{"port", strconv.Itoa(n.port)},
		{"guid", fmt.Sprintf("0x%x", n.guid)}, {"maxconn", strconv.Itoa(n.maxConn)}, {"gdr", gdr}} {
		initial(e, kv[0], kv[1])
	}
	b.keep[e] = true
}

// newNet creates the element of a port at its place in the tree; nil if there is no CPU or PCI device for it.
func (b *builder) newNet(n *netPort) *topo.Element {
	var above *topo.Element
	if id := path.Base(n.path); isBusID(id) && b.m.pciPath(id) != "" {
		above = b.pci(id, "0x02")
	} else {
		above = b.root.Child("cpu")
	}
	if above == nil {
		return nil
	}
	nic := above.Child("nic")
	if nic == nil {
		nic = element("nic")
		above.Children = append(above.Children, nic)
	}
	e := element("net", "name", n.name)
	nic.Children = append(nic.Children, e)
	return e
}

package detect

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo"
)

// netPort is what a net plugin reports of one port.
type netPort struct {
	name    string
	path    string // PCI device in sysfs, "" where there is none
	speed   int    // Mb/s
	port    int
	guid    uint64
	maxConn int
	gdr     bool
}

// nets lists the ports in the plugin's order: InfiniBand and RoCE where there
// are any, else sockets.
func (m *Machine) nets(p Params) ([]netPort, error) {
	if !p.IBDisable {
		if ib := m.ibPorts(p); len(ib) > 0 {
			return ib, nil
		}
	}
	return m.socketPorts(p)
}

// ibPorts lists active ports of RDMA devices (transport/net_ib.cc:690-860).
func (m *Machine) ibPorts(p Params) []netPort {
	devs, err := fs.ReadDir(m.Tree, "sys/class/infiniband")
	if err != nil {
		return nil
	}
	gdr := m.peerMemory()
	var out []netPort
	seen := map[string]int{}
	for _, d := range devs {
		dir := "sys/class/infiniband/" + d.Name()
		ports, err := fs.ReadDir(m.Tree, dir+"/ports")
		if err != nil {
			continue
		}
		pci := ""
		if r, err := m.Tree.RealPath(dir + "/device"); err == nil {
			pci = mergedFunction(r, p.MergeVFs)
		}
		for _, q := range ports {
			num := atoi(q.Name())
			if !strings.Contains(m.read(dir+"/ports/"+q.Name()+"/state"), "ACTIVE") || !Listed(p.IBHCA, d.Name(), num) {
				continue
			}
			out = append(out, netPort{name: d.Name(), path: pci, speed: gbps(m.read(dir + "/ports/" + q.Name() + "/rate")),
				port: num + seen[pci], guid: guid(m.read(dir + "/sys_image_guid")), maxConn: 131072, gdr: gdr})
			seen[pci]++
		}
	}
	return out
}

// mergedFunction makes the functions of a multi-port card one device, and
// virtual functions too (net_ib.cc, ncclIbGetPciPath).
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

// gbps reads "400 Gb/sec (4X NDR)" as Mb/s.
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

// peerMemory tells whether the kernel lets NICs reach GPU memory
// (net_ib.cc:990, ncclIbGdrSupport).
func (m *Machine) peerMemory() bool {
	for _, f := range []string{"sys/kernel/mm/memory_peers/nv_mem/version", "sys/kernel/mm/memory_peers/nv_mem_nc/version", "sys/module/nvidia_peermem/version"} {
		if m.read(f) != "" {
			return true
		}
	}
	return false
}

// Listed applies a list of NCCL_IB_HCA or NCCL_SOCKET_IFNAME: prefixes, after
// '=' whole names, after '^' exclusions; ":port" narrows (misc/utils.cc).
func Listed(list, name string, port int) bool {
	if list == "" {
		return true
	}
	not := strings.HasPrefix(list, "^")
	list = strings.TrimPrefix(list, "^")
	exact := strings.HasPrefix(list, "=")
	list = strings.TrimPrefix(list, "=")
	for _, item := range strings.Split(list, ",") {
		want, p, narrowed := strings.Cut(item, ":")
		match := want != "" && strings.HasPrefix(name, want)
		if exact {
			match = name == want
		}
		if match && (!narrowed || port < 0 || atoi(p) == port) {
			return !not
		}
	}
	return not
}

// socketPorts lists the interfaces that NCCL would talk over
// (misc/socket.cc:355).
func (m *Machine) socketPorts(p Params) ([]netPort, error) {
	all, err := m.Interfaces()
	if err != nil {
		return nil, err
	}
	lists := []string{"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}
	if len(p.SocketIfname) > 1 {
		lists = []string{p.SocketIfname}
	}
	for _, list := range lists {
		var out []netPort
		for _, i := range all {
			if Listed(list, i.Name, -1) {
				out = append(out, m.socketPort(i.Name, len(out)))
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	if len(p.SocketIfname) > 1 {
		return nil, &AbsentError{"an interface that NCCL_SOCKET_IFNAME=" + p.SocketIfname + " allows", "none with an address"}
	}
	return nil, nil
}

// socketPort is the socket plugin's view: 10 Gb/s where the driver gives no
// speed (net_socket.cc:80).
func (m *Machine) socketPort(name string, dev int) netPort {
	n := netPort{name: name, speed: atoi(m.read("sys/class/net/" + name + "/speed")), guid: uint64(dev), maxConn: 65536}
	if n.speed <= 0 {
		n.speed = 10000
	}
	if r, err := m.Tree.RealPath("sys/class/net/" + name + "/device"); err == nil && isBusID(path.Base(r)) {
		n.path = r
	}
	return n
}

// net adds a port under its NIC: on its PCI device, or on the first CPU where
// it has none (xml.cc:911 ncclTopoFillNet).
func (b *builder) net(n *netPort, dev int) {
	var above *topo.Element
	if id := path.Base(n.path); isBusID(id) && b.m.pciPath(id) != "" {
		above = b.pci(id, "0x02")
	} else {
		above = b.root.Child("cpu")
	}
	if above == nil {
		return
	}
	nic := above.Child("nic")
	if nic == nil {
		nic = element("nic")
		above.Children = append(above.Children, nic)
	}
	gdr := "0"
	if n.gdr {
		gdr = "1"
	}
	nic.Children = append(nic.Children, element("net", "name", n.name, "dev", strconv.Itoa(dev), "latency", "0",
		"speed", strconv.Itoa(n.speed), "port", strconv.Itoa(n.port), "guid", fmt.Sprintf("0x%x", n.guid),
		"maxconn", strconv.Itoa(n.maxConn), "gdr", gdr))
}

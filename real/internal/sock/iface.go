package sock

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/iflist"
)

// Interface is a network interface with one of its addresses.
type Interface struct {
	Name string
	Addr net.IP
	Zone string
}

// interfaces lists the machine's addresses in the kernel's order.
func interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var out []Interface
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				f := Interface{Name: i.Name, Addr: n.IP}
				if n.IP.IsLinkLocalUnicast() && n.IP.To4() == nil {
					f.Zone = i.Name
				}
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// choose returns the interfaces that NCCL uses: those that NCCL_SOCKET_IFNAME lists, else those called ib…,
// else all except docker…, lo… and virbr…, else docker…, lo…, virbr… in turn (misc/socket.cc:236). One
// address of an interface is used, of the family that NCCL_SOCKET_FAMILY selects; IPv6 loopback addresses are
// excluded.
func choose(all []Interface, ifname, family string) []Interface {
	lists := []string{"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}
	if len(ifname) > 1 {
		lists = []string{ifname}
	}
	for _, list := range lists {
		var out []Interface
		seen := map[string]bool{}
		for _, i := range all {
			v4 := i.Addr.To4() != nil
			switch {
			case !iflist.Listed(list, i.Name, -1), seen[i.Name],
				family == "AF_INET" && !v4, family == "AF_INET6" && v4, !v4 && i.Addr.IsLoopback():
				continue
			}
			seen[i.Name] = true
			out = append(out, i)
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// First returns the interface that NCCL's bootstrap listens on: the first usable one (bootstrap.cc:113).
func First(ifname, family string) (Interface, error) {
	all, err := interfaces()
	if err != nil {
		return Interface{}, err
	}
	if some := choose(all, ifname, family); len(some) > 0 {
		return some[0], nil
	}
	return Interface{}, absent(ifname, family)
}

// Host returns the address in the form that net.Dial takes.
func (i Interface) Host() string {
	a := net.IPAddr{IP: i.Addr, Zone: i.Zone}
	return a.String()
}

func absent(ifname, family string) error {
	needs := "a network interface with an address"
	if ifname != "" {
		needs += " that NCCL_SOCKET_IFNAME=" + ifname + " allows"
	}
	if family != "" {
		needs += " of family " + family
	}
	return &exec.UnsupportedError{Feature: "sockets", Needs: needs, Found: "none"}
}

// speed returns an interface's speed in Mbps; 10000 if the kernel does not report it (net_socket.cc:88).
func speed(name string) int {
	b, err := os.ReadFile("/sys/class/net/" + name + "/speed")
	if err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && v > 0 {
			return v
		}
	}
	return 10000
}

// split returns the number of sockets over which a connection of an interface sends, and the number of helper
// threads that serve them.
func split(s *netcfg.Socket, name string) (socks, threads int) {
	vendor := uint64(0)
	if b, err := os.ReadFile("/sys/class/net/" + name + "/device/vendor"); err == nil {
		vendor, _ = strconv.ParseUint(strings.TrimSpace(string(b)), 0, 16)
	}
	return connect.SocketSplit(uint16(vendor), s.Threads, s.SocksPerThread)
}

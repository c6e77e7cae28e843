package detect

import (
	"net"
	"os"
)

// Live returns the Host of the machine that the program runs on. It fails if the host name cannot be read.
func Live() (*Host, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &Host{Tree: Root(), GPUs: NVML, Interfaces: addressed, Hostname: host}, nil
}

// addressed lists the machine's interfaces.
func addressed() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	return withAddresses(all, (*net.Interface).Addrs), nil
}

// withAddresses lists running interfaces with an IP address; IPv6 loopback does
// not count (misc/socket.cc:144-165).
func withAddresses(all []net.Interface, of func(*net.Interface) ([]net.Addr, error)) (out []Interface) {
	for _, i := range all {
		if i.Flags&net.FlagRunning == 0 {
			continue
		}
		addrs, err := of(&i)
		if err != nil {
			continue
		}
		at := Interface{Name: i.Name}
		for _, a := range addrs {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil {
				at.V4 = at.V4 || ip.To4() != nil
				at.V6 = at.V6 || ip.To4() == nil && !ip.IsLoopback()
			}
		}
		if at.V4 || at.V6 {
			out = append(out, at)
		}
	}
	return out
}

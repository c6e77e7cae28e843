package detect

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInterfacesHaveAddresses: an interface counts that runs and has an IPv4 address, or an IPv6 one that is
// not loopback's (misc/socket.cc:144-165).
func TestInterfacesHaveAddresses(t *testing.T) {
	const up = net.FlagUp | net.FlagRunning
	given := map[string][]string{"four": {"192.0.2.1/24"}, "six": {"2001:db8::1/64"},
		"both": {"fe80::1/64", "192.0.2.2/24"}, "lo": {"127.0.0.1/8", "::1/128"}, "lo6": {"::1/128"},
		"bare": nil, "idle": {"192.0.2.3/24"}, "odd": {"ff"}, "gone": nil}
	all := []net.Interface{{Name: "idle", Flags: net.FlagUp}, {Name: "gone", Flags: up}}
	for _, name := range []string{"four", "six", "both", "lo", "lo6", "bare", "odd"} {
		all = append(all, net.Interface{Name: name, Flags: up})
	}
	got := withAddresses(all, func(i *net.Interface) (out []net.Addr, err error) {
		if i.Name == "gone" {
			return []net.Addr{address("192.0.2.4/24")}, errors.New("no such interface")
		}
		for _, a := range given[i.Name] {
			out = append(out, address(a))
		}
		return out, nil
	})
	want := []Interface{{Name: "four", V4: true}, {Name: "six", V6: true}, {Name: "both", V4: true, V6: true},
		{Name: "lo", V4: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

type address string

func (address) Network() string  { return "ip+net" }
func (a address) String() string { return string(a) }

// TestLiveIsThisMachine: its host name, its tree, NVML, and the interfaces that have addresses.
func TestLiveIsThisMachine(t *testing.T) {
	h, err := Live()
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil || h.Hostname != name || h.Tree == nil || h.GPUs == nil {
		t.Errorf("%v: %+v, want host %s", err, h, name)
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withAddresses(all, (*net.Interface).Addrs), got); diff != "" {
		t.Error(diff)
	}
}

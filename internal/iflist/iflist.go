// Package iflist parses lists of network devices in the form of NCCL_IB_HCA and NCCL_SOCKET_IFNAME
// (misc/utils.cc), and matches devices with them. It knows no topology.
package iflist

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
)

// How many names of a list NCCL reads (net_ib.cc:102, socket.h:18).
const (
	maxListedHCAs       = 32
	maxListedInterfaces = 16
)

// Listed reports whether a list as of NCCL_IB_HCA or NCCL_SOCKET_IFNAME allows a
// device: names are prefixes, after '=' whole names, after '^' exclusions;
// ":port" narrows (misc/utils.cc:136). A list that names nothing matches all;
// port -1 means a device without ports.
func Listed(list, name string, port int) bool {
	list, not := strings.CutPrefix(list, "^")
	list, exact := strings.CutPrefix(list, "=")
	items, match, most := 0, false, maxListedHCAs
	if port < 0 {
		most = maxListedInterfaces
	}
	for item := range strings.SplitSeq(list, ",") {
		want, p, narrowed := strings.Cut(item, ":")
		if want == "" {
			continue
		}
		if items++; items > most {
			break
		}
		here := strings.HasPrefix(name, want)
		if exact {
			here = name == want
		}
		match = match || here && (!narrowed || port < 0 || leading(p) == port)
	}
	return (match || items == 0) != not
}

// leading returns the number at the beginning of a text, like C's atoi.
func leading(s string) int {
	n, _ := strconv.Atoi(s[:len(s)-len(strings.TrimLeft(s, "0123456789"))])
	return n
}

// Entry is one entry "name:port:rail:plane" of an interface list; port -1 matches any.
// Rail and Plane, which are -1 where they are not said, have a meaning from NCCL 2.30.7 on.
type Entry struct {
	Name        string // a prefix, or the whole name
	Port        int
	Rail, Plane int
}

// Parse parses "a,b:1,c:1:0:2": names with optional port, rail and plane (utils.cc:136; 203 of v2.30.7).
func Parse(s string) []Entry {
	var out []Entry
	for _, f := range strings.Split(s, ",") {
		parts := strings.Split(f, ":")
		if parts[0] == "" {
			continue
		}
		number := func(at int) int {
			if at >= len(parts) || parts[at] == "" && len(parts) > 2 {
				return -1
			}
			n, _ := cnum.Int(parts[at])
			return int(n)
		}
		out = append(out, Entry{Name: parts[0], Port: number(1), Rail: number(2), Plane: number(3)})
	}
	return out
}

// Match reports whether a name and port are on a list; every port is on an empty list (utils.cc:182).
func Match(name string, port int, ifs []Entry, exact bool) bool {
	return len(ifs) == 0 || Find(name, port, ifs, exact) != nil
}

// Find returns the first entry that matches a port, nil if there is none.
func Find(name string, port int, ifs []Entry, exact bool) *Entry {
	for i := range ifs {
		e := &ifs[i]
		match := strings.HasPrefix(name, e.Name)
		if exact {
			match = name == e.Name
		}
		if match && (e.Port == -1 || port == -1 || e.Port == port) {
			return e
		}
	}
	return nil
}

// Device is a network device that a list may name; Port is -1 without one.
type Device struct {
	Name string
	Port int
}

// Unmatched lists the entries of a list that match none of the devices, and the
// names of the devices.
func Unmatched(list string, devices []Device) (entries, names []string) {
	list = strings.TrimPrefix(list, "^")
	exact := strings.HasPrefix(list, "=")
	ifs := Parse(strings.TrimPrefix(list, "="))
	matched := make([]bool, len(ifs))
	seen := map[string]bool{}
	for _, d := range devices {
		if !seen[d.Name] {
			seen[d.Name] = true
			names = append(names, d.Name)
		}
		for i := range ifs {
			matched[i] = matched[i] || Match(d.Name, d.Port, ifs[i:i+1], exact)
		}
	}
	for i, f := range ifs {
		if !matched[i] {
			entries = append(entries, f.Name)
		}
	}
	return entries, names
}

// Compare orders names with numbers at their ends as people count: mlx5_2 comes before mlx5_10.
func Compare(a, b string) int {
	stem := func(s string) (string, int) {
		t := strings.TrimRight(s, "0123456789")
		n, _ := strconv.Atoi(s[len(t):])
		return t, n
	}
	as, an := stem(a)
	bs, bn := stem(b)
	return cmp.Or(strings.Compare(as, bs), cmp.Compare(an, bn))
}

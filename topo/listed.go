package topo

import (
	"strconv"
	"strings"
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

// leading is the number that a text begins with, as C's atoi sees it.
func leading(s string) int {
	n, _ := strconv.Atoi(s[:len(s)-len(strings.TrimLeft(s, "0123456789"))])
	return n
}

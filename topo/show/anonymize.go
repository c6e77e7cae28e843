package show

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
)

// kept lists, by element, the attributes that Nameless copies unchanged because they do not identify a site.
var kept = map[string][]string{
	"system": {"version"},
	"cpu":    {"numaid", "affinity", "arch", "vendor", "familyid", "modelid"},
	"pci": {"class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
		"link_width"},
	"gpu":    {"dev", "sm", "rank", "gdr", "mlopart"},
	"nvlink": {"count", "tclass"}, "c2c": {"bw", "count"}, "pcilink": {},
	"nic": {}, "net": {"dev", "latency", "speed", "port", "maxconn", "gdr", "coll", "keep", "net", "gin",
		"railId", "planeId"},
}

// Nameless returns a copy of a topology without names that identify a site: host hashes, GUIDs, bus ids,
// device names, comments and everything that NCCL does not read. NCCL's decisions do not change: the new bus
// ids, names, hashes and GUIDs keep order and equality, and functions of one PCI device remain functions of
// one.
func Nameless(root *decl.Element) *decl.Element {
	a := &namer{buses: map[string]string{}, names: map[string]string{},
		numbers: map[string]map[string]string{}}
	a.collect(root)
	return a.copy(root)
}

// namer maps old names to new ones.
type namer struct {
	buses   map[string]string // by domain:bus:device
	names   map[string]string
	numbers map[string]map[string]string // by attribute
}

// collect reads all names of the tree and assigns the new ones in order.
func (a *namer) collect(root *decl.Element) {
	devices, names := map[busID]bool{}, map[string]bool{}
	values := map[string]map[string]bool{"guid": {}, "host_hash": {}}
	root.Walk(func(e *decl.Element, _ []*decl.Element) {
		for _, attr := range []string{"busid", "target"} {
			if v, ok := e.Get(attr); ok {
				if id, real := parseBus(v); real {
					id.fn = 0
					devices[id] = true
				}
			}
		}
		for attr, seen := range values { //lint:sorted each is filled by itself
			if v, ok := e.Get(attr); ok {
				seen[v] = true
			}
		}
		if v, ok := e.Get("name"); ok && e.Name == "net" {
			for part := range strings.SplitSeq(v, "+") {
				names[part] = true
			}
		}
	})
	for i, id := range slices.SortedFunc(maps.Keys(devices), busID.compare) {
		a.buses[id.key()] = fmt.Sprintf("%04x:%02x:00", i/255, 1+i%255)
	}
	for i, n := range slices.Sorted(maps.Keys(names)) {
		a.names[n] = fmt.Sprintf("%s%0*d", driver(n), len(strconv.Itoa(len(names)-1)), i)
	}
	for attr, seen := range values { //lint:sorted each is filled by itself
		a.numbers[attr] = map[string]string{}
		list := slices.Sorted(maps.Keys(seen))
		slices.SortStableFunc(list, func(x, y string) int { return compareHex(x, y) })
		for i, v := range list {
			a.numbers[attr][v] = fmt.Sprintf("0x%x", i+1)
		}
	}
}

// driver returns the prefix of a net's name that identifies the NCCL plugin that reports it, and so which
// ports fuse; the new name keeps it. It is "net" for other names.
func driver(name string) string {
	for _, d := range []string{"mlx5_", "mlx4_", "mlx", "ib", "bnxt", "ionic"} {
		if strings.HasPrefix(name, d) {
			return d
		}
	}
	return "net"
}

// compareHex orders numbers as strtoull with base 0 reads them.
func compareHex(x, y string) int {
	a, _ := strconv.ParseUint(x, 0, 64)
	b, _ := strconv.ParseUint(y, 0, 64)
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// copy returns an element with all below it, without what NCCL does not know.
func (a *namer) copy(e *decl.Element) *decl.Element {
	out := &decl.Element{Name: e.Name, Open: e.Open}
	for _, x := range e.Attrs {
		v, ok := a.value(e, x.Name, x.Value)
		if ok {
			out.Set(x.Name, v)
		}
	}
	for _, c := range e.Children {
		if _, known := kept[c.Name]; known {
			out.Append(a.copy(c))
		}
	}
	return out
}

// value returns the new value of an attribute and whether the attribute is kept.
func (a *namer) value(e *decl.Element, name, v string) (string, bool) {
	switch name {
	case "busid", "target":
		id, real := parseBus(v)
		if !real {
			return v, e.Name == "nvlink" && v == virtual
		}
		fn := id.fn
		id.fn = 0
		return fmt.Sprintf("%s.%x", a.buses[id.key()], fn), true
	case "guid", "host_hash":
		return a.numbers[name][v], true
	case "name":
		parts := strings.Split(v, "+")
		for i, p := range parts {
			parts[i] = a.names[p]
		}
		return strings.Join(parts, "+"), e.Name == "net"
	}
	return v, slices.Contains(kept[e.Name], name)
}

// virtual is the NVSwitch that is not on the host's bus (NCCL v2.28.9 xml.cc:660).
const virtual = "fffffff:ff:ff.0"

type busID struct{ domain, bus, dev, fn uint64 }

func (b busID) key() string { return fmt.Sprintf("%x:%x:%x", b.domain, b.bus, b.dev) }

func (b busID) compare(o busID) int {
	return slices.Compare([]uint64{b.domain, b.bus, b.dev, b.fn}, []uint64{o.domain, o.bus, o.dev, o.fn})
}

// parseBus parses domain:bus:device.function. ok is false for the virtual NVSwitch.
func parseBus(v string) (busID, bool) {
	if v == virtual {
		return busID{}, false
	}
	rest, fn, dot := strings.Cut(v, ".")
	parts := strings.Split(rest, ":")
	if !dot || len(parts) != 3 {
		return busID{}, false
	}
	var n [4]uint64
	for i, p := range append(parts, fn) {
		x, err := strconv.ParseUint(p, 16, 32)
		if err != nil {
			return busID{}, false
		}
		n[i] = x
	}
	return busID{n[0], n[1], n[2], n[3]}, true
}

// Package lstopo reads the output of lstopo --of xml (hwloc 1 and 2) and builds the tree of a host from it:
// CPUs and NUMA nodes, PCIe switches, GPUs and NICs. The file has no NVLinks, compute capabilities or NIC
// speeds: these come from catalogued kinds or options, else an error says which option to give.
//
// What it must not know: files, what is decided on a machine.
package lstopo

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/decl"
)

// object is an <object> of hwloc's tree with its attributes and <info> pairs.
type object struct {
	kind     string
	attrs    map[string]string
	info     map[string]string
	children []*object
	above    *object
	at       decl.Origin
	links    *distances // of the machine
}

// Is reports whether text is hwloc's XML, judged by its first 4096 bytes.
func Is(text string) bool {
	head := text[:min(len(text), 4096)]
	return strings.Contains(head, "<topology") && (strings.Contains(head, "hwloc") ||
		strings.Contains(head, `<object type="Machine"`))
}

// maxDepth bounds how deep objects lie: a machine of hwloc has some twenty levels.
const maxDepth = 200

// parse reads the tree of objects. Errors have a position.
func parse(data []byte, file string) (*object, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = true
	var root, at *object
	for depth := 0; ; {
		line, col := d.InputPos()
		here := decl.Origin{File: file, Line: line, Col: col}
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && root != nil && at == nil:
			return root, nil
		case errors.Is(err, io.EOF), err != nil && strings.HasSuffix(err.Error(), "unexpected EOF"):
			return nil,
				fail.File("%s: the file ends inside its topology; write the whole output of lstopo --of xml",
					here)
		case err != nil:
			return nil, fail.File("%s: %s; write what lstopo --of xml wrote", here,
				strings.TrimPrefix(err.Error(), "XML syntax error on line "))
		}
		switch t := t.(type) {
		case xml.StartElement:
			// behind the machine: the topology's own
			if of := cmp.Or(at, root); t.Name.Local == "info" && of != nil {
				a := attrs(t)
				of.info[a["name"]] = a["value"]
			}
			if err := root.distances(d, t, here); err != nil {
				return nil, err
			}
			if t.Name.Local != "object" {
				continue
			}
			if depth++; depth > maxDepth {
				return nil, fail.File("%s: objects more than %d deep; write what lstopo --of xml wrote", here,
					maxDepth)
			}
			o := &object{attrs: attrs(t), info: map[string]string{}, above: at, at: here}
			o.kind = o.attrs["type"]
			switch {
			case at != nil:
				at.children = append(at.children, o)
			case root != nil:
				return nil, fail.File("%s: a second machine; write the output of lstopo of one host", here)
			default:
				root = o
			}
			at = o
		case xml.EndElement:
			if t.Name.Local == "object" {
				at = at.above
				depth--
			}
		}
	}
}

func attrs(t xml.StartElement) map[string]string {
	out := map[string]string{}
	for _, a := range t.Attr {
		out[a.Name.Local] = a.Value
	}
	return out
}

// walk calls f for an object and all below it.
func (o *object) walk(f func(*object)) {
	f(o)
	for _, c := range o.children {
		c.walk(f)
	}
}

// function is a PCI function: its bus id, class and ids, in hexadecimal.
type function struct {
	bus, class, vendor, device, subVendor, subDevice string
}

// pci parses pci_busid and pci_type, "0302 [10de:20b0] [10de:134f] a1".
func (o *object) pci() (function, error) {
	f := function{bus: o.attrs["pci_busid"]}
	var class, v, d, sv, sd uint16
	if n, err := fmt.Sscanf(o.attrs["pci_type"], "%04x [%04x:%04x] [%04x:%04x]", &class, &v, &d, &sv,
		&sd); n != 5 {
		return f,
			fail.File("%s: pci_type %q: %v; hwloc writes class, vendor and device, 0302 [10de:20b0] "+
				"[10de:134f] a1", o.at, o.attrs["pci_type"], err)
	}
	var dom, bus, dev, fn uint16
	if n, _ := fmt.Sscanf(f.bus, "%04x:%02x:%02x.%1x", &dom, &bus, &dev, &fn); n != 4 ||
		len(f.bus) != len("0000:01:00.0") {
		return f, fail.File("%s: pci_busid %q; hwloc writes domain, bus, device and function, 0000:3b:00.0",
			o.at, f.bus)
	}
	hex := func(v uint16) string { return fmt.Sprintf("0x%04x", v) }
	f.class, f.vendor, f.device, f.subVendor, f.subDevice = hex(class)+"00", hex(v), hex(d), hex(sv), hex(sd)
	return f, nil
}

// perLane are GB/s of a lane by PCIe generation, as hwloc reckons them (8b/10b up to
// generation 2, 128b/130b to 5), with the rate that sysfs names.
var perLane = []struct {
	rate string
	gbs  float64
}{{"64.0", 8}, {"64.0", 7.877}, {"32.0", 3.938}, {"16.0", 1.969}, {"8.0", 0.985}, {"5.0", 0.5}, {"2.5", 0.25}}

// link turns pci_link_speed, GB/s, into what sysfs has; ok is false where it is not said.
// Pairs of equal bandwidth are the same to NCCL; sixteen lanes are taken first.
func link(o *object) (speed, width string, ok bool) {
	v, err := strconv.ParseFloat(o.attrs["pci_link_speed"], 64)
	if err != nil || v <= 0 {
		return "", "0", false
	}
	for _, w := range []float64{16, 8, 4, 2, 1} {
		for _, l := range perLane {
			if x := l.gbs * w; v > 0.97*x && v < 1.03*x {
				return l.rate + " GT/s PCIe", strconv.Itoa(int(w)), true
			}
		}
	}
	return "", "0", false
}

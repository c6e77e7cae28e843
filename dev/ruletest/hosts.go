package ruletest

import (
	"fmt"
	"slices"
	"strings"
)

// XML writes the topology file of hosts that are given line by line, what is inside something indented:
//
//	cpu 0                     of socket 0; arch=, vendor=, familyid=, modelid=, host_hash= where they differ
//	  switch 10               at 0000:10:00.0; "10.1" is its function 1, "1:10" in domain 1
//	    gpu 11 sm=80          link_width= and the like are its PCI device's; "gpu" is in the device above
//	      nvlink 21 count=4   to the GPU at 21; "nvlink switch", "nvlink cpu"
//	      xgmi 21             likewise, of a GPU of AMD (gcn=gfx942 arch=38911)
//	      c2c bw=44712
//	    pcilink 20              in a switch: a link to the switch at 20, without one back
//	    card 12               a PCI device with a <nic>
//	      net mlx5_0 speed=200000
//
// GPUs and nets are numbered as they come. "link_width=" leaves the attribute out.
func XML(text string) (string, error) {
	w := &writer{}
	version := 1
	if strings.Contains(text, "gcn=") {
		version = 2 // RCCL's
	}
	fmt.Fprintf(&w.b, "<system version=\"%d\">\n", version)
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		depth := len(line) - len(strings.TrimLeft(line, " "))
		w.close(depth)
		if err := w.open(depth, strings.Fields(line)); err != nil {
			return "", fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	w.close(0)
	w.b.WriteString("</system>\n")
	return w.b.String(), nil
}

type writer struct {
	b          strings.Builder
	stack      []element
	gpus, nets int
}

// element is one that is not closed: how deep, and what closes it.
type element struct {
	depth int
	tags  []string
}

// close ends what is not less deep.
func (w *writer) close(depth int) {
	for n := len(w.stack); n > 0 && w.stack[n-1].depth >= depth; n-- {
		for _, tag := range slices.Backward(w.stack[n-1].tags) {
			fmt.Fprintf(&w.b, "</%s>", tag)
		}
		w.b.WriteString("\n")
		w.stack = w.stack[:n-1]
	}
}

// attributes in order, of which later ones of a name replace earlier ones.
type attributes [][2]string

func (a attributes) with(more ...[2]string) attributes {
	for _, m := range more {
		if i := slices.IndexFunc(a, func(x [2]string) bool { return x[0] == m[0] }); i >= 0 {
			a[i][1] = m[1]
		} else {
			a = append(a, m)
		}
	}
	return a
}

// ofDevice are attributes of <pci>.
var ofDevice = []string{"class", "link_speed", "link_width", "vendor", "device", "subsystem_vendor",
	"subsystem_device"}

// open begins an element.
func (w *writer) open(depth int, words []string) error {
	name := words[0]
	of, given := split(words[1:])
	e := element{depth: depth}
	add := func(tag string, a attributes) {
		fmt.Fprintf(&w.b, "<%s", tag)
		for _, x := range a {
			if x[1] != "" {
				fmt.Fprintf(&w.b, " %s=%q", x[0], x[1])
			}
		}
		w.b.WriteString(">")
		e.tags = append(e.tags, tag)
	}
	device := func(class string) attributes { // takes what is the device's from the given ones
		a := attributes{{"busid", busID(of)}, {"class", class}, {"link_speed", "32.0 GT/s PCIe"},
			{"link_width", "16"}}
		given = slices.DeleteFunc(given, func(x [2]string) bool {
			if !slices.Contains(ofDevice, x[0]) {
				return false
			}
			a = a.with(x)
			return true
		})
		return a
	}
	switch name {
	case "cpu":
		add("cpu", attributes{{"host_hash", "0x1"}, {"numaid", of}, {"arch", "x86_64"},
			{"vendor", "GenuineIntel"}, {"familyid", "6"}, {"modelid", "143"}}.with(given...))
	case "switch":
		add("pci", device("0x060400"))
	case "gpu":
		if of != "" {
			add("pci", device("0x030200"))
		}
		add("gpu", attributes{{"dev", fmt.Sprint(w.gpus)}, {"sm", "90"}, {"gdr", "1"}}.with(given...))
		w.gpus++
	case "card":
		add("pci", device("0x020700"))
		add("nic", given)
	case "net":
		add("net", attributes{{"name", of}, {"dev", fmt.Sprint(w.nets)}, {"speed", "400000"}, {"port", "1"},
			{"guid", fmt.Sprintf("0x%x", w.nets+1)}, {"maxconn", "131072"}, {"gdr", "1"}}.with(given...))
		w.nets++
	case "nvlink":
		a := attributes{{"target", busID(of)}, {"count", "18"}, {"tclass", "0x030200"}}
		switch of {
		case "switch":
			a = a.with([2]string{"target", "fffffff:ffff:ff"}, [2]string{"tclass", "0x068000"})
		case "cpu":
			a = a.with([2]string{"target", "ffff:ff:ff"}, [2]string{"tclass", "0x068001"})
		}
		add("nvlink", a.with(given...))
	case "xgmi":
		add("xgmi", attributes{{"target", busID(of)}, {"count", "1"}, {"tclass", "0x030200"}}.with(given...))
	case "pcilink":
		add("pcilink", attributes{{"target", busID(of)}}.with(given...))
	case "c2c":
		add("c2c", attributes{{"bw", "44712"}, {"count", "10"}}.with(given...))
	default:
		return fmt.Errorf("no element %q; write cpu, switch, gpu, card, net, nvlink, xgmi, c2c or pcilink",
			name)
	}
	w.stack = append(w.stack, e)
	return nil
}

// split divides words into the attributes K=V, and the word without a value.
func split(words []string) (of string, given attributes) {
	for _, word := range words {
		if k, v, ok := strings.Cut(word, "="); ok {
			given = append(given, [2]string{k, strings.ReplaceAll(v, "_", " ")})
		} else {
			of = word
		}
	}
	return of, given
}

// busID is NCCL's form of "10", "10.1" or "1:10.1".
func busID(short string) string {
	domain, bus, ok := strings.Cut(short, ":")
	if !ok {
		domain, bus = "0", short
	}
	bus, function, ok := strings.Cut(bus, ".")
	if !ok {
		function = "0"
	}
	return fmt.Sprintf("%04s:%02s:00.%s", domain, bus, function)
}

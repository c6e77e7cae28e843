package lstopo

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/topo/machine"
	"github.com/simccl/simccl/topo/smi"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// writer writes what lstopo would of a random host, and keeps where the devices are.
type writer struct {
	strings.Builder
	r       *rand.Rand
	at      draw.Place
	bus     int
	names   []int // numbers of NICs to come
	gpus    []draw.Place
	nics    map[string]draw.Place
	domains int
}

func (w *writer) object(kind, attrs string, below func()) {
	fmt.Fprintf(w, "<object type=%q %s>\n", kind, attrs)
	below()
	w.WriteString("</object>\n")
}

// next is a bus id: each host bridge is a PCI domain here.
func (w *writer) next() string {
	w.bus++
	return fmt.Sprintf("%04x:%02x:00", w.domains, w.bus)
}

// port is a bridge between two PCI buses.
func (w *writer) port(below func()) {
	w.object("Bridge",
		fmt.Sprintf(
			`bridge_type="1-1" pci_busid="%s.0" pci_type="0604 [1000:c030] [1000:1003] b0" pci_link_speed="31.507692"`, w.next()), below)
}

// cluster writes devices that share one switch: a GPU, a NIC, or a NIC of two functions.
func (w *writer) device() {
	id := w.next()
	w.at.PIX = max(w.at.PIX, 1)
	if w.r.IntN(2) == 0 || len(w.gpus) == 0 || len(w.names) < 2 {
		w.gpus = append(w.gpus, w.at)
		w.object("PCIDev",
			fmt.Sprintf(
				`pci_busid="%s.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692"`, id),
			func() {})
		return
	}
	for f := range 1 + w.r.IntN(2) {
		name := fmt.Sprintf("mlx5_%d", w.names[0])
		w.names = w.names[1:]
		w.nics[name] = w.at
		w.object("PCIDev",
			fmt.Sprintf(
				`pci_busid="%s.%d" pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="31.507692"`, id,
				f), func() {
				w.object("OSDev", fmt.Sprintf(`name=%q osdev_type="3"`, name), func() {})
			})
	}
}

// tree writes what is below a root port: a device, a switch of devices, or switches below one.
func (w *writer) tree() {
	w.at.Tree++
	w.port(func() {
		parts := 1 + w.r.IntN(3)
		devices := func() {
			w.at.PIX++
			for range 1 + w.r.IntN(2) {
				w.port(w.device)
			}
		}
		switch {
		case parts == 1 && w.r.IntN(2) == 0:
			w.at.PIX++
			w.device()
		case parts == 1:
			w.port(devices)
		default:
			w.port(func() {
				for range parts {
					w.port(func() { w.port(devices) })
				}
			})
		}
	})
}

func randomHost(r *rand.Rand) *writer {
	w := &writer{r: r, names: r.Perm(100), nics: map[string]draw.Place{}}
	w.WriteString("<?xml version=\"1.0\"?>\n<topology version=\"2.0\"><!-- hwloc -->\n")
	w.object("Machine", `os_index="0"`, func() {
		for s := range 1 + r.IntN(4) {
			w.at.NUMA++
			w.object("Package", fmt.Sprintf(`os_index="%d"`, s), func() {
				w.WriteString(
					`<info name="CPUVendor" value="AuthenticAMD"/><info name="CPUFamilyNumber" value="23"/><info name="CPUModelNumber" value="49"/>` + "\n")
				w.object("NUMANode", fmt.Sprintf(`os_index="%d" cpuset="0x%08x"`, s, 0xff<<(8*s)), func() {})
				for range 1 + r.IntN(2) {
					w.at.Bridge++
					w.domains++
					w.object("Bridge", `bridge_type="0-1"`, func() {
						for range 1 + r.IntN(2) {
							w.tree()
						}
					})
				}
			})
		}
	})
	w.WriteString("</topology>\n")
	return w
}

// TestRandomHosts: the host that lstopo's XML becomes has the paths of its tree of objects.
func TestRandomHosts(t *testing.T) {
	n := 300
	if text := os.Getenv("SIMCCL_CASES"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		w := randomHost(r)
		links := &machine.NVLink{}
		if len(w.gpus) > 1 && r.IntN(2) == 0 {
			links.Pairs = [][3]int{{0, len(w.gpus) - 1, 1 + r.IntN(4)}}
		}
		root, _, err := Tree([]byte(w.String()), "h.xml", Given{NVLink: links})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w)
		}
		spec, err := topoxml.Parse(topoxml.Write(root), "h.xml")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		m := smi.Of(spec.Root)
		if m.GPUs != len(w.gpus) || len(m.Devices) != len(w.gpus)+len(w.nics) {
			t.Fatalf("seed %d: %d GPUs of %d, %d devices", seed, m.GPUs, len(w.gpus), len(m.Devices))
		}
		at := func(i int) draw.Place {
			if i < m.GPUs {
				return w.gpus[i]
			}
			return w.nics[m.Devices[i].Name]
		}
		for i := range m.Devices {
			for j := range m.Devices {
				want := at(i).To(at(j))
				switch {
				case i == j:
					want = "X"
				case len(links.Pairs) > 0 && i+j == m.GPUs-1 && i*j == 0 && max(i, j) < m.GPUs:
					want = fmt.Sprintf("NV%d", links.Pairs[0][2])
				}
				if got := m.Cells[i][j]; got != want {
					t.Fatalf("seed %d: %s – %s: %s in the file, %s in the machine\n%s", seed,
						m.Devices[i].Name, m.Devices[j].Name, want, got, w)
				}
			}
		}
	}
}

package lstopo

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/machine"
)

// distances is hwloc's matrix NVLinkBandwidth: MB/s between GPUs, NVSwitches and CPUs, all
// links of two together (hwloc topology-nvml.c).
type distances struct {
	at      decl.Origin
	Type    string   `xml:"type,attr"` // of all objects; empty: each index has its own
	Indexes []string `xml:"indexes"`
	Values  []string `xml:"u64values"`
}

// maxObjects is the largest accepted number of objects of a distance matrix.
const maxObjects = 512

// distances reads the element of such a matrix, which comes behind the machine.
func (o *object) distances(d *xml.Decoder, t xml.StartElement, at decl.Origin) error {
	name := attrs(t)["name"]
	if o == nil || !strings.HasPrefix(t.Name.Local, "distances2") || name != "NVLinkBandwidth" {
		return nil
	}
	o.links = &distances{at: at}
	if err := d.DecodeElement(o.links, &t); err != nil {
		return fail.File("%s: %v; write what lstopo --of xml wrote", at, err)
	}
	return nil
}

// nvlinks returns the NVLinks that the file has; nil where it has none of these GPUs.
func (b *builder) nvlinks(top *object) (*machine.NVLink, error) {
	d := top.links
	if d == nil {
		return nil, nil
	}
	index := strings.Fields(strings.Join(d.Indexes, " "))
	texts := strings.Fields(strings.Join(d.Values, " "))
	n := len(index)
	if n > maxObjects || len(texts) != n*n {
		return nil, fail.File("%s: %d values between %d objects; write what lstopo --of xml wrote", d.at,
			len(texts), n)
	}
	values := make([]int, len(texts))
	for i, text := range texts {
		v, err := strconv.ParseUint(text, 10, 40)
		if err != nil {
			return nil, fail.File("%s: %q is no bandwidth; write what lstopo --of xml wrote", d.at, text)
		}
		values[i] = int(v)
	}
	ends := b.ends(top, d, index)
	link := perLink(values, n)
	out := machine.NVLink{}
	each, cpus := make([]int, len(b.gpus)), make([]int, len(b.gpus))
	for i, x := range ends {
		for j, y := range ends {
			count := values[i*n+j] / link
			if i == j || count == 0 || x.gpu < 0 {
				continue
			}
			switch {
			case y.gpu > x.gpu:
				out.Pairs = append(out.Pairs, [3]int{x.gpu, y.gpu, count})
			case y.gpu < 0 && y.cpu:
				cpus[x.gpu] += count
			case y.gpu < 0:
				each[x.gpu] += count
			}
		}
	}
	slices.SortFunc(out.Pairs, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	most := slices.Max(each)
	switch {
	case most > 0 && len(out.Pairs) > 0:
		return nil, fail.File("%s: NVLinks to NVSwitches and to other GPUs; give the output of nvidia-smi "+
			"topo -m of that host with --nvlink", d.at)
	case most > 0 && slices.Min(each) == most:
		out.Switch, out.Links = true, most
	case most > 0:
		out.Switch, out.Each = true, each
	case len(out.Pairs) == 0:
		return nil, nil
	}
	note := fmt.Sprintf("NVLinks are the file's (NVLinkBandwidth), of %d MB/s each", link)
	if slices.Max(cpus) > 0 {
		note += "; those between GPUs and CPUs are left out"
	}
	b.note("%s", note)
	return &out, nil
}

// endpoint is an object of the matrix: a GPU's number, or -1 and whether it is a CPU. An NVSwitch is neither.
type endpoint struct {
	gpu int
	cpu bool
}

// ends finds the objects of indexes, "OSDev:332" or 332, by their gp_index.
func (b *builder) ends(top *object, d *distances, index []string) []endpoint {
	objects := map[string]*object{}
	top.walk(func(o *object) { objects[o.attrs["gp_index"]] = o })
	out := make([]endpoint, len(index))
	for i, text := range index {
		kind, gp, own := strings.Cut(text, ":")
		if !own {
			kind, gp = d.Type, text
		}
		out[i] = endpoint{gpu: -1, cpu: kind == "Package" || kind == "NUMANode" || kind == "Machine"}
		for o := objects[gp]; o != nil; o = o.above {
			if o.kind == "PCIDev" {
				out[i].gpu = slices.IndexFunc(b.gpus, func(g machine.Device) bool {
					bus, _ := g.PCI.Get("busid")
					return bus == o.attrs["pci_busid"]
				})
				break
			}
		}
	}
	return out
}

// perLink returns the MB/s of a link as hwloc reckons them: 20000 of the first NVLinks, else 25000.
func perLink(values []int, n int) int {
	first := false
	for i, v := range values {
		if i%(n+1) == 0 || v == 0 {
			continue
		}
		if v%20000 != 0 {
			return 25000
		}
		first = first || v%25000 != 0
	}
	if first {
		return 20000
	}
	return 25000
}

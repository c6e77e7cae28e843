package scenario

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

// GPU is what all GPUs of the machine are, by their PCI functions and the data sheets; false where
// the topology does not say, or not all are the same.
func (m *Site) GPU() (gpu datasheet.GPU, ok bool) {
	ok = true
	for i := range m.Cluster.Classes {
		m.Cluster.Classes[i].Spec.Root.Walk(func(e *topo.Element, above []*topo.Element) {
			if e.Name != "gpu" || len(above) == 0 {
				return
			}
			vendor, _ := above[len(above)-1].Hex("vendor")
			device, _ := above[len(above)-1].Hex("device")
			one, known := datasheet.Device(vendor, device)
			ok = ok && known && (gpu.Name == "" || gpu.Name == one.Name)
			gpu = one
		})
	}
	return gpu, ok && gpu.Name != ""
}

// SameChip reports whether two GPUs compute at the same rates: boards of one chip, which differ in
// memory.
func SameChip(a, b datasheet.GPU) bool {
	x, _, _ := strings.Cut(a.Name, " ")
	y, _, _ := strings.Cut(b.Name, " ")
	return x == y && a.Matrix == b.Matrix
}

// OnGPU gives a job that was made for another GPU than the machine's the times of the machine's. A job
// that says no GPU, and a machine that says none, are left as they are: note says so. scaled is nil
// where nothing is.
func (m *Site) OnGPU(p *workload.Program) (q *workload.Program, scaled *transform.OnGPU, note string,
	err error) {
	own, known := m.GPU()
	switch of, made := datasheet.Find(p.GPU.Name); {
	case !computes(p):
		return p, nil, "", nil
	case p.GPU.Name == "":
		return p, nil,
			"the job does not say which GPU its compute times are of: they are the same on every machine", nil
	case !made:
		return p, nil,
			fmt.Sprintf("computing takes what it takes on %s, which is not known: it is the same on every "+
				"machine", p.GPU.Name), nil
	case !known:
		return p, nil, fmt.Sprintf("the topology does not say which GPUs it has, or they are not known: "+
			"computing takes what it takes on %s", of.Name), nil
	case SameChip(of, own):
		return p, nil, "", nil
	}
	q, scaled, err = transform.ToGPU(p, p.GPU.Name, own.Name)
	if err != nil {
		return nil, nil, "", bad(err)
	}
	return q, scaled, scaled.String(), nil
}

// computes reports whether GPUs compute in a program.
func computes(p *workload.Program) bool {
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			if s := &p.Lists[i].Steps[k]; s.Kind == workload.Compute && !workload.OnHost(s.Stream) &&
				s.Time > 0 && !p.Communicates(s) {
				return true
			}
		}
	}
	return false
}

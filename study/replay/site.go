package replay

import (
	"fmt"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/ongpu"
)

// Elsewhere reports whether a machine is another one than a job was recorded on, as far as it is known: it
// has other GPUs, or the ranks are on more or fewer hosts than those of a built-in machine would be.
func Elsewhere(site *scenario.Site, meta *load.MetaInfo, ranks int) bool {
	of, named := datasheet.Find(meta.GPU)
	if own, known := site.GPU(); known && named && !scenario.SameChip(of, own) {
		return true
	}
	b, ok := find(meta.GPU)
	if !ok || ranks < 1 || ranks > site.Cluster.NRanks() {
		return false
	}
	return site.Cluster.Locate(ranks-1).Host+1 != (ranks+b.gpus-1)/b.gpus
}

// OnGPU gives a job whose times are of the GPU from the times of another, to, or where that is "" and the job
// was made for a GPU those of the machine's. Recordings stay as they are: where a machine was named that is
// not of their GPUs, note says so. The error is a *transform.Error.
func OnGPU(site *scenario.Site, p *workload.Program, from, to string, named bool) (q *workload.Program,
	scaled *ongpu.Scaled, note string, err error) {
	if to != "" {
		q, scaled, err = ongpu.Scale(p, from, to)
		if err != nil {
			return nil, nil, "", err
		}
		return q, scaled, scaled.String(), nil
	}
	if p.GPU.Name != "" || from == "" {
		return site.OnGPU(p)
	}
	if own, known := site.GPU(); named {
		if of, ok := datasheet.Find(from); !known || !ok || !scenario.SameChip(of, own) {
			note = fmt.Sprintf("computing takes what it took on %s; --gpu NAME scales it", from)
		}
	}
	return p, nil, note, nil
}

// On says on what GPU a job ran that Run has run: how its times were scaled, what there is to say of
// that, and whether what it holds fits.
func (r *Report) On(site *scenario.Site, scaled *ongpu.Scaled, note string) {
	if r.GPU = scaled; note != "" {
		r.Notes = append(r.Notes, note)
	}
	gpu, known := site.GPU()
	if scaled != nil {
		gpu, _ = datasheet.Find(scaled.To)
	} else if !known {
		gpu, _ = datasheet.Find(r.made.GPU.Name)
	}
	r.Training = trained(r.made, gpu.Name, r.period)
	if r.Memory = r.made.Memory.Use(units.Bytes(gpu.CapacityBytes())); r.Memory == nil {
		return
	}
	if problem := r.Memory.Problem(gpu.Name); problem != "" {
		r.Notes = append([]string{problem}, r.Notes...)
	}
}

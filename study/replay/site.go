package replay

import (
	"fmt"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/transform"
)

// Elsewhere reports whether a machine is known to be another one than a job was recorded on: it has other
// GPUs, or its ranks are on another number of hosts than on the built-in machine of the recording.
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

// OnGPU converts compute times to another GPU: to `to`, or if that is "" and the job was generated for a GPU,
// to the machine's. Times of recordings are unchanged unless `to` is given; if a named machine has other
// GPUs, note says so. It returns a *transform.Error.
func OnGPU(site *scenario.Site, p *workload.Program, from, to string, named bool) (q *workload.Program,
	scaled *transform.OnGPU, note string, err error) {
	if to != "" {
		q, scaled, err = transform.ToGPU(p, from, to)
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

// On adds to the report the GPU that the job ran on: how its times were scaled, a note, and whether its
// memory use fits.
func (r *Report) On(site *scenario.Site, scaled *transform.OnGPU, note string) {
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

package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/trace/chrome"
)

// JoinedMeta returns the self-description of a trace joined from several ranks' files.
func JoinedMeta(heads []*chrome.Info) chrome.Meta {
	meta := chrome.Meta{Source: heads[0].Source, Clock: "calendar of each process's host"}
	if slices.ContainsFunc(heads, func(h *chrome.Info) bool { return len(h.ClockSync) > 0 }) {
		meta.Clock = "rank 0"
	}
	for _, h := range heads {
		meta.GPUSync = append(meta.GPUSync, h.GPUSync...)
	}
	slices.SortStableFunc(meta.GPUSync, func(a, b chrome.ClockSync) int {
		return cmp.Compare(a.Rank, b.Rank)
	})
	for _, o := range heads[0].Other {
		switch o.Key {
		case "topo":
			meta.Topo = o.Str
		case "seed":
			meta.Seed = o.Int
		}
	}
	return meta
}

// Text summarizes the join: the files, the precision of the clocks, and the omitted events.
func (j *Joined) Text(heads []*chrome.Info) string {
	clocks := "times by each process's calendar"
	if len(j.Clocks) > 0 {
		clocks = fmt.Sprintf("clocks agree to %.3f us", worstUs(j.Clocks))
	}
	if gpus := JoinedMeta(heads).GPUSync; len(gpus) > 0 {
		clocks += fmt.Sprintf(", GPUs' tied to them within %.3f us", worstUs(gpus))
	}
	s := fmt.Sprintf("files of %d processes, %d ranks in all, %d arrows between them; %s\n", len(heads),
		heads[0].Part.Of, j.Arrows, clocks)
	if j.Loose+j.Early > 0 {
		s += fmt.Sprintf("left out %d arrows to ranks that are not here, %d shorter than the clocks are "+
			"sure\n", j.Loose, j.Early)
	}
	return s
}

// worstUs returns the largest uncertainty in microseconds.
func worstUs(list []chrome.ClockSync) float64 {
	worst := int64(0)
	for _, c := range list {
		worst = max(worst, c.UncertaintyNs)
	}
	return float64(worst) / 1000
}

package scenario

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Facts sums an outcome up; busBW is the bus bandwidth of its time.
func (r *Running) Facts(o *Outcome, busBW float64) Facts {
	f := Facts{Algo: "-", Proto: "-", ModelUs: float64(o.Choice.TimeUs), SimUs: o.Result.Elapsed.Micros(),
		Limit:     "-",
		Simulated: o.Result.Account.Method.String(), Margin: o.Result.Account.Margin,
		Near: o.Result.Account.Note, NotProved: o.NotProved,
		Periods: o.Result.Account.Periods, SkippedPs: int64(o.Result.Account.Skipped),
		ByCost: o.Result.Account.ByCost, Congestion: congestion.Of(o.Result.Links), Draws: o.Draws}
	f.Account = o.Result.Account
	switch {
	case o.Kernel != nil:
		f.Algo, f.Channels, f.Kernel, f.ModelUs = "SYM", o.Kernel.Channels, o.Kernel.Kernel.String(),
			float64(o.Kernel.TimeUs)
	case o.Copies != nil:
		f.Algo = "CE"
	case o.hierarchy != nil:
		f.Algo = strings.ToUpper(tuning.Hierarchical)
	case o.Peer != nil:
		f.Algo, f.Channels, f.Kernel = "PEER", o.Peer.Blocks, o.Peer.Kernel
	case o.Choice.Warps > 0 && o.SendsAndReceives(): // RCCL's direct AllGather and ReduceScatter
		f.Algo, f.Proto, f.Channels = strings.ToUpper(o.Choice.Direct), "-", r.Site.Comm.P2PChannels
	case o.Choice.Warps > 0:
		f.Algo, f.Proto, f.Channels = o.Choice.Algo.LogName(), o.Choice.Proto.LogName(),
			o.Plan.Split.NChannels
	case o.SendsAndReceives():
		f.Algo, f.Channels = "P2P", r.Site.Comm.P2PChannels
	}
	if o.Best != nil && o.Best.Result.Elapsed > 0 {
		regret := float64(o.Result.Elapsed) / float64(o.Best.Result.Elapsed)
		f.Regret, f.Best = &regret, o.Best.Label()
	}
	if l, ok := Limiting(o.Result.Links); ok && o.Result.Elapsed > 0 {
		f.Limit, f.Use, f.Queue, f.Links = r.Site.LinkName(l.Name), l.Use(o.Result.Elapsed), int64(l.Queue),
			r.busiest(&o.Result)
		if ideal := l.Ideal(); ideal > 0 {
			f.Expect = busBW * float64(o.Result.Elapsed) / float64(ideal)
			f.IdealUs = ideal.Micros()
		}
	}
	for _, l := range o.Result.Links {
		if float64(l.Ideal()) > float64(l.Busy)*(1+1e-6)+float64(units.Nanosecond) {
			f.Overfull = l.Name
		}
	}
	if d := f.Draws; d != nil {
		own := *d
		own.LeastBusBW, own.MostBusBW = busBW*f.SimUs/max(d.MostUs, 1e-9), busBW*f.SimUs/max(d.LeastUs, 1e-9)
		f.Draws = &own
	}
	return f
}

// Windowed reports whether a window of the operation's iterations was simulated.
func (f *Facts) Windowed() bool { return f.Simulated == exec.Window.String() }

// busiest lists the five links with the highest utilisation.
func (r *Running) busiest(of *exec.Result) []LinkFacts {
	const most = 5
	var top []*exec.LinkLoad // the first of equal ones first
	for i := range of.Links {
		l := &of.Links[i]
		if l.Capacity <= 0 || l.Bytes <= 0 || len(top) == most && l.Ideal() <= top[most-1].Ideal() {
			continue
		}
		at := slices.IndexFunc(top, func(o *exec.LinkLoad) bool { return l.Ideal() > o.Ideal() })
		if at < 0 {
			at = len(top)
		}
		top = slices.Insert(top, at, l)
		top = top[:min(most, len(top))]
	}
	var out []LinkFacts
	for _, l := range top {
		out = append(out, LinkFacts{r.Site.LinkName(l.Name), float64(l.Capacity), int64(l.Bytes),
			l.Use(of.Elapsed), int64(l.Queue)})
	}
	return out
}

// Limiting is the link that would need the longest for the bytes it carried.
func Limiting(links []exec.LinkLoad) (exec.LinkLoad, bool) {
	best, longest := -1, units.Time(-1)
	for i, l := range links {
		if l.Capacity <= 0 || l.Bytes == 0 {
			continue
		}
		if t := l.Ideal(); t > longest {
			best, longest = i, t
		}
	}
	if best < 0 {
		return exec.LinkLoad{}, false
	}
	return links[best], true
}

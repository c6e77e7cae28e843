package exec

import "github.com/simccl/simccl/units"

// Append adds the result of a kernel that follows those of r on the same machine. The zero
// Result has none.
func (r *Result) Append(next *Result) {
	if r.Links == nil {
		*r = *next
		return
	}
	before := r.Elapsed
	for i := range r.Finish {
		r.Finish[i] = before + next.Finish[i]
	}
	r.Elapsed += next.Elapsed
	r.Events += next.Events
	r.Account.Programs += next.Account.Programs
	for i := range min(len(r.Links), len(next.Links)) {
		r.Links[i].Bytes += next.Links[i].Bytes
		r.Links[i].Busy += next.Links[i].Busy
	}
}

// Divide makes the result of n equal operations that of one; Finish stays that of all.
func (r *Result) Divide(n int) {
	r.Elapsed /= units.Time(n)
	for i := range r.Links {
		r.Links[i].Bytes /= units.Bytes(n)
		r.Links[i].Busy /= units.Time(n)
	}
}

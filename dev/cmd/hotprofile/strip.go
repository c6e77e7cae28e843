package main

import (
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// ours begins the names of functions of this module.
const ours = "github.com/simccl/simccl/"

// rooms are what make and release compile by the profile, with all packages below
// (PGO in the Makefile).
var rooms = []string{"sim", "packet", "trace", "internal/protowire"}

// isHot says whether a function is in one of the rooms.
func isHot(function string) bool {
	at, ok := strings.CutPrefix(function, ours)
	return ok && slices.ContainsFunc(rooms, func(room string) bool {
		return strings.HasPrefix(at, room+"/") || strings.HasPrefix(at, room+".")
	})
}

// hot is a profile with the calls from and to hot functions alone, and nothing that
// names the machine or the time.
func hot(p *profile.Profile) *profile.Profile {
	p.TimeNanos, p.DurationNanos, p.Comments = 0, 0, nil
	for _, l := range p.Location {
		l.Address, l.Mapping = 0, nil
	}
	p.Mapping = nil
	kept := p.Sample[:0]
	for _, s := range p.Sample {
		s.Label, s.NumLabel, s.NumUnit = nil, nil, nil
		if first := slices.IndexFunc(s.Location, anyHot); first >= 0 {
			last := len(s.Location)
			for last > 0 && !anyHot(s.Location[last-1]) {
				last--
			}
			s.Location = s.Location[max(first-1, 0):min(last+1, len(s.Location))]
			kept = append(kept, s)
		}
	}
	p.Sample = kept
	return p.Compact()
}

// anyHot says whether a place in the program is in a hot function, itself or as
// inlined.
func anyHot(l *profile.Location) bool {
	return slices.ContainsFunc(l.Line, func(n profile.Line) bool {
		return n.Function != nil && isHot(n.Function.Name)
	})
}

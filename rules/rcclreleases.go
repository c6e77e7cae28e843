package rules

import (
	"fmt"
	"strings"
)

// brought is a release of RCCL by its number, with the releases of ROCm that bring it, oldest first.
type brought struct {
	Release
	rocm  string          // with blanks between
	rules func() *Ruleset // nil where none are here
}

// rcclTable lists the releases of RCCL, oldest first. Sources: branches and tags of ROCm's repositories up
// to 6.3, their changelog after that.
func rcclTable() []brought {
	return []brought{
		{Release{2, 10, 3}, "5.0", nil}, {Release{2, 11, 4}, "5.1 5.2", nil},
		{Release{2, 12, 12}, "5.3", nil},
		{Release{2, 13, 4}, "5.4", nil}, {Release{2, 15, 5}, "5.5", nil}, {Release{2, 16, 5}, "5.6", nil},
		{Release{2, 17, 1}, "5.7", nil}, {Release{2, 18, 3}, "6.0", nil}, {Release{2, 18, 6}, "6.1", nil},
		{Release{2, 20, 5}, "6.2", nil}, {Release{2, 21, 5}, "6.3", nil}, {Release{2, 22, 3}, "6.4", nil},
		{Release{2, 26, 6}, "7.0", nil}, {Release{2, 27, 7}, "7.1 7.2", nil},
		{Release{2, 28, 3}, "7.11 7.12 7.13", rccl2283}, {Release{2, 30, 4}, "7.14", rccl2304},
	}
}

// releases are those of a library that have rules, oldest first.
func releases(l Library) (out []entry) {
	if l == NCCL {
		t := table()
		return t[:]
	}
	for _, b := range rcclTable() {
		if b.rules != nil {
			out = append(out, entry{b.Release, b.rules})
		}
	}
	return out
}

// KnownOf lists a library's releases that have rules as text that For reads, oldest first.
func KnownOf(l Library) (out []string) {
	for _, e := range releases(l) {
		out = append(out, l.prefix()+e.Release.String())
	}
	return out
}

// DefaultRCCL returns the rules that hold for machines of AMD where no release is asked for.
func DefaultRCCL() *Ruleset { return rccl2304() }

// forRCCL returns the rules of a release of RCCL by number.
func forRCCL(number string) (*Ruleset, error) {
	want, err := ParseRelease(number)
	if err != nil {
		return nil, &FormatError{RCCL.prefix() + number}
	}
	for _, b := range rcclTable() {
		if b.Release == want && b.rules != nil {
			return b.rules(), nil
		}
	}
	return nil, &UnknownError{Release: want, Library: RCCL}
}

// ForROCm returns the rules of the RCCL that a release of ROCm brings, "7.14". Errors are an
// *UnknownError for a release without rules here, and a *ROCmError for one that is not known.
func ForROCm(rocm string) (*Ruleset, error) {
	for _, b := range rcclTable() {
		for _, name := range strings.Fields(b.rocm) {
			if rocm != name && !strings.HasPrefix(rocm, name+".") {
				continue
			}
			if b.rules == nil {
				return nil, &UnknownError{Release: b.Release, Library: RCCL, ROCm: rocm}
			}
			r := b.rules()
			r.Edition.ROCm = name
			return r, nil
		}
	}
	return nil, &ROCmError{rocm}
}

// ROCmError says that no RCCL is known for a release of ROCm.
type ROCmError struct{ ROCm string }

func (e *ROCmError) Error() string {
	return fmt.Sprintf("ROCm %s: its RCCL is not known here; known: %s", e.ROCm, knownRCCL())
}

// knownRCCL lists the releases of RCCL that have rules, for messages.
func knownRCCL() string {
	var names []string
	for _, b := range rcclTable() {
		if b.rules != nil {
			names = append(names, b.Release.String()+" (ROCm "+strings.ReplaceAll(b.rocm, " ", ", ")+")")
		}
	}
	return strings.Join(names, ", ")
}

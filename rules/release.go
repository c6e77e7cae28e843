package rules

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Release is a version of NCCL. The zero Release means "not given".
type Release struct{ Major, Minor, Patch int }

// ParseRelease reads "2.28.9", also with the packaging suffix of NCCL's tags
// ("v2.28.9-1").
func ParseRelease(text string) (Release, error) {
	core, _, _ := strings.Cut(strings.TrimPrefix(text, "v"), "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return Release{}, &FormatError{text}
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 15)
		if err != nil {
			return Release{}, &FormatError{text}
		}
		n[i] = int(v)
	}
	return Release{n[0], n[1], n[2]}, nil
}

// FormatError says that a text names no release.
type FormatError struct{ Text string }

func (e *FormatError) Error() string {
	if number, ok := strings.CutPrefix(e.Text, "rccl-"); ok {
		return fmt.Sprintf("%q is no version of RCCL: write a number or a release of ROCm (rocm==7.14); "+
			"known: %s", number, knownRCCL())
	}
	return fmt.Sprintf("%q is no version of NCCL: write three numbers, as in %s", e.Text, Default().Version())
}

// String is the release as NCCL writes it, "2.28.9".
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r.Major, r.Minor, r.Patch) }

// Code is NCCL_VERSION_CODE, 22809 for 2.28.9.
func (r Release) Code() int { return r.Major*10000 + r.Minor*100 + r.Patch }

// Compare is negative where r is older than o, 0 for the same release.
func (r Release) Compare(o Release) int { return cmp.Compare(r.Code(), o.Code()) }

// Span is the releases in which something exists: from Since to the one before
// Until. A zero end is open.
type Span struct{ Since, Until Release }

// Holds reports whether a release is in the span.
func (s Span) Holds(r Release) bool {
	none := Release{}
	return (s.Since == none || r.Compare(s.Since) >= 0) && (s.Until == none || r.Compare(s.Until) < 0)
}

// UnknownError says that a release has no rules here.
type UnknownError struct {
	Release Release
	Library Library
	ROCm    string // the release of ROCm that was named and brings it; "" where the number was
}

func (e *UnknownError) Error() string {
	if e.Library == RCCL {
		by := ""
		if e.ROCm != "" {
			by = "ROCm " + e.ROCm + " brings RCCL " + e.Release.String() + ": "
		}
		return by + "no rules of RCCL " + e.Release.String() + "; known: " + knownRCCL()
	}
	var names []string
	for _, r := range Known() {
		names = append(names, r.String())
	}
	return fmt.Sprintf("no rules of NCCL %s; known: %s", e.Release, strings.Join(names, ", "))
}

// MissingError says that a stage was called without rules: an error of the
// caller's program.
type MissingError struct{ Stage string }

func (e *MissingError) Error() string {
	return e.Stage + ": no rules given; set Rules in its Params, for instance to rules.Default()"
}

// MixedError says that a stage works on something made by another release's
// rules: an error of the caller's program.
type MixedError struct {
	Stage      string
	Want, Have string // Versions
}

func (e *MixedError) Error() string {
	return fmt.Sprintf("%s: rules of NCCL %s for what was made by those of %s", e.Stage, e.Want, e.Have)
}

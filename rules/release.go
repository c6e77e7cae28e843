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

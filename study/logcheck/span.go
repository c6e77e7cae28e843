package logcheck

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/units"
)

// span is neighbouring sizes of one operation for which both chose the same:
// "AllReduce 4 B to 1 MiB: TREE LL 0..15 → RING LL 0..15".
type span struct {
	fn           string
	lo, hi       int64
	theirs, ours string // "TREE LL channels 0..15"
	file         string
	line         int
}

// extend adds an operation to the last span, or begins one.
func extend(spans []span, op *ncclog.Choice, ours string) []span {
	next := span{op.Func, op.Bytes, op.Bytes, verdict(op.Text.Text), verdict(ours), op.File, op.Line}
	if n := len(spans); n > 0 {
		if s := &spans[n-1]; s.fn == next.fn && s.theirs == next.theirs && s.ours == next.ours &&
			next.lo >= s.lo {
			s.hi = max(s.hi, next.hi)
			return spans
		}
	}
	return append(spans, next)
}

// verdict returns the part of a choice's line after "-> Algo", in short form: "RING proto SIMPLE
// channel{Lo..Hi}={0..15}" becomes "RING SIMPLE channels 0..15".
func verdict(line string) string {
	_, rest, ok := strings.Cut(line, "-> Algo ")
	if !ok {
		return line
	}
	r := strings.NewReplacer(" proto", "", "channel{Lo..Hi}={", "channels ", "}", "")
	return r.Replace(rest)
}

func (s *span) differs() bool { return s.theirs != s.ours }

func (s *span) text(library string) string {
	sizes := decision.SizeText(units.Bytes(s.lo))
	if s.hi != s.lo {
		sizes += " to " + decision.SizeText(units.Bytes(s.hi))
	}
	return fmt.Sprintf("%s:%d: %s %s: %s %s → simccl %s", s.file, s.line, s.fn, sizes, library, s.theirs,
		s.ours)
}

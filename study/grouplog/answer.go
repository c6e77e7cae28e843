package grouplog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
)

// Answer is the kernels that NCCL launches for a group, and their time.
type Answer struct {
	Group int    `json:"group"`
	Lines []Line `json:"lines"`
	// Us is the time of one group in a CUDA graph, in microseconds; nil (null) if one of its kernels can be
	// planned but not simulated; Note has the reason.
	Us   *float64 `json:"us"`
	Note string   `json:"note,omitempty"`

	measured float64
	kernels  []string
}

// Answers simulates the groups of a file one after the other. The launch order of communicators is inferred
// from NCCL's lines in the file, if it has any.
func (m *Machine) Answers(ctx context.Context, list []Group) ([]Answer, error) {
	m.setOrder(m.orderOf(list))
	out := make([]Answer, 0, len(list))
	for i := range list {
		g := &list[i]
		launched, err := m.Launch(g)
		if err != nil {
			return nil, err
		}
		a := Answer{Group: g.Number, Lines: []Line{}, measured: g.TimeUs}
		switch t, err := m.time(ctx, g); {
		case errors.Is(err, plan.ErrUnsupported):
			a.Note = err.Error()
		case err != nil:
			return nil, err
		default:
			us := t.Micros()
			a.Us = &us
		}
		for k := range launched {
			a.Lines = append(a.Lines, launched[k].Lines...)
			for i := range launched[k].Kernels {
				a.kernels = append(a.kernels, describe(launched[k].Ranks, &launched[k].Kernels[i]))
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// Text formats answers as a table.
func Text(list []Answer) string {
	var b strings.Builder
	for i := range list {
		a := &list[i]
		if fmt.Fprintf(&b, "group %d: ", a.Group); a.Us == nil {
			fmt.Fprintf(&b, "not simulated: %s", a.Note)
		} else {
			fmt.Fprintf(&b, "%.2f us", *a.Us)
		}
		if a.measured > 0 {
			fmt.Fprintf(&b, ", measured %.2f us", a.measured)
		}
		b.WriteByte('\n')
		for _, k := range a.kernels {
			fmt.Fprintf(&b, "  kernel of ranks %s\n", k)
		}
		for _, l := range a.Lines {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	return b.String()
}

// describe formats a kernel's calls.
func describe(ranks []int32, k *launch.Kernel) string {
	if k.Symmetric != nil {
		return fmt.Sprintf("%v: %s, %d operations on %d blocks of %d threads", ranks, k.Symmetric.Kernel,
			len(k.Symmetric.Works), k.Symmetric.Channels, k.Threads)
	}
	sends := 0
	for _, own := range k.Exchanges {
		for _, x := range own {
			if x.Send >= 0 {
				sends++
			}
		}
	}
	if len(k.Batches) == 0 {
		return fmt.Sprintf("%v: one operation of sends and receives", ranks)
	}
	return fmt.Sprintf("%v: %d collectives, %d sends, %d batches of works, %d threads", ranks, len(k.Tasks),
		sends, slices.Max(k.Batches), k.Threads)
}

// String is NCCL's line, without the rank that prints it.
func (l Line) String() string {
	return fmt.Sprintf("%s: %d Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}", l.Func, l.Bytes, l.Algo,
		l.Proto, l.Lo, l.Hi)
}

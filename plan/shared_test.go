package plan

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/connect"
)

type sharing struct {
	Generator
	n int
}

func (s sharing) Sharing() int { return s.n }

// TestConnectionsThatShareAnID: a plan whose connections share numbers cannot be taken apart by rank; one
// whose generator says that each has its own can, and so can one whose generator says nothing.
func TestConnectionsThatShareAnID(t *testing.T) {
	for _, x := range []struct {
		gen  Generator
		want bool
	}{{nil, true}, {sharing{n: 1}, true}, {sharing{n: 2}, false}} {
		p := &Plan{gen: x.gen, Comm: &connect.Layout{NRanks: 8}, conns: 3}
		err := p.Distinct()
		if refused := new(UnsupportedError); errors.As(err, &refused) == x.want || x.want && err != nil {
			t.Errorf("%+v: %v, want an error: %t", x.gen, err, !x.want)
		}
	}
}

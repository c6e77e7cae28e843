package web

import (
	"context"
	"errors"
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/netpreset"
	tried "github.com/simccl/simccl/study/congestion"
)

// Networks is what the page offers for the network between the nodes.
type Networks struct {
	Models   []string      `json:"models"` // how it is simulated, the default first
	Fabrics  []FabricEntry `json:"fabrics"`
	Controls []string      `json:"controls"` // congestion controls
	Balances []string      `json:"balances"` // how frames choose their routes
	Classes  []string      `json:"classes"`  // of NICs and their plugins
}

// FabricEntry is a network by name.
type FabricEntry struct {
	Name string `json:"name"`
	What string `json:"what"`
}

func networks() Networks {
	n := Networks{Models: netpreset.Models(), Controls: strings.Split(packet.Presets, ", "),
		Balances: netpreset.Balances(), Classes: gpu.NetworkNames()}
	for _, p := range netpreset.Presets() {
		n.Fabrics = append(n.Fabrics, FabricEntry{p.Name, p.What})
	}
	return n
}

// Congestion is what one size meets in a network that is simulated frame by frame, and
// what would change it.
type Congestion struct {
	*tried.Report
	Text string `json:"text"`
}

func (s *Service) congestion(ctx context.Context, q *Query, _ Emit) (any, error) {
	if m := q.Spec.Network.Model; m == "" || m == "flow" {
		return nil, &scenario.FieldError{Path: "network.model", Value: m,
			Problem: "what frames meet needs a network of packets or hybrid"}
	}
	spec := q.Spec.Clone()
	w := &spec.Workload
	*w = scenario.Workload{Op: w.Op, Sizes: []string{q.Size}, Root: max(w.Root, 0), Types: w.Types,
		Reductions: w.Reductions}
	if q.Size == "" {
		return nil, errors.New("congestion: name a size")
	}
	r, err := tried.Run(ctx, spec, s.options(ctx, nil))
	if err != nil {
		return nil, err
	}
	return Congestion{r, r.Text()}, nil
}

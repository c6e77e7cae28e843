package scenario

import (
	"context"
	"errors"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// TestBudgetRefusesWhatCostsMore: an operation whose forecast is above Options.Budget is refused; without
// one a minute is the limit.
func TestBudgetRefusesWhatCostsMore(t *testing.T) {
	spec := Spec{Machine: Machine{Nodes: []Nodes{{Topo: "dgx-h100", Count: 4}}},
		Network:  Network{Faults: []string{"nic=node0/0:slow=3"}},
		Workload: Workload{Op: "all_reduce", Sizes: []string{"64M"}}}
	opt := Options{Settings: config.Sources{NoEnv: true}}
	if _, err := Run(context.Background(), spec, opt); err != nil {
		t.Fatal(err)
	}
	opt.Budget = units.FromMicros(1)
	if _, err := Run(context.Background(), spec, opt); err == nil {
		t.Error("a microsecond was enough")
	} else if _, refused := errors.AsType[*exec.NotImplementedError](err); !refused {
		t.Error(err)
	}
}

package netpreset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// TestConversations: members of a fabric file's packets in, settings of frames, switches and senders out.
//
//	default                           what is set without any
//	packets [cc=] [balance=] [gbit=] [timeout=] [retries=]   members, one a line: what differs from default.
//	                                  gbit is of the cables of hosts at one switch, "400,100" one each
//	environment                       NCCL's variables, one a line: what they set of transports
//	refused [model=] [cc=] [balance=] [fidelity=] [fold=]   why a model does not go with the engine
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "default", "packets":
				set, err := settingsOf(d)
				was := &sim.Packets{}
				if err == nil && d.Cmd == "packets" {
					was, err = settingsOf(&datadriven.TestData{})
				}
				if err != nil {
					return "error: " + err.Error()
				}
				return ruletest.Changes(was, set)
			case "environment":
				return transportsOf(d)
			case "refused":
				member, problem, hint := Refused(Choice{Model: ruletest.Value(d, "model", ""),
					CC: ruletest.Value(d, "cc", ""), Balance: ruletest.Value(d, "balance", "")},
					ruletest.Value(d, "fidelity", ""), ruletest.Value(d, "fold", ""))
				return strings.Trim(strings.Join([]string{member, problem, hint}, "; "), "; ")
			}
			d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			return ""
		}
	})
}

func settingsOf(d *datadriven.TestData) (*sim.Packets, error) {
	number := func(key string) units.Opt[int] {
		n, err := strconv.Atoi(ruletest.Value(d, key, ""))
		if err != nil {
			return units.Opt[int]{}
		}
		return units.Some(n)
	}
	var cables []string
	for i, gbit := range strings.Split(ruletest.Value(d, "gbit", "400"), ",") {
		cables = append(cables, fmt.Sprintf(`{"a": "node%d/0", "b": "s", "gbit": %s}`, i, gbit))
	}
	text := fmt.Sprintf(`{"packets": {%s}, "switches": [{"name": "s"}], "cables": [%s]}`,
		strings.Join(strings.Split(strings.TrimSpace(d.Input), "\n"), ", "), strings.Join(cables, ", "))
	n, err := fabric.ParseNetwork([]byte(text), "net.json")
	if err != nil {
		return nil, err
	}
	as := Choice{Model: "packet", CC: ruletest.Value(d, "cc", ""), Balance: ruletest.Value(d, "balance", "")}
	set, err := Of(n, as, 1, sim.Reliability{Timeout: number("timeout"), Retries: number("retries")})
	var p *fabric.PacketsError
	if errors.As(err, &p) {
		return nil, fmt.Errorf("%s: %s", p.Key, p.Problem)
	}
	return set, err
}

func transportsOf(d *datadriven.TestData) string {
	var plain, cfg sim.Config
	none, _, err := config.Load(config.Sources{})
	if err != nil {
		return "error: " + err.Error()
	}
	c, _, err := config.Load(config.Sources{Flags: strings.Fields(d.Input)})
	if err != nil {
		return "error: " + err.Error()
	}
	Transports(&plain, none)
	Transports(&cfg, c)
	return ruletest.Changes(&plain, &cfg)
}

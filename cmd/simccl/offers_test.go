package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/spf13/pflag"
)

// ends make a value of one that continues after what is completed.
var ends = map[string]string{"rank=": "0:slow=2", "nic=node0/": "0:slow=2",
	"link=": "leaf0~spine0:slow=2",
	"nic=":  "0:slow=2", "network run link=": "0~7:slow=2", "gpu=node0/": "0:absent",
	"nvswitch=": "0:absent", "rail=": "0:absent",
	"leaf=": "leaf0:absent", "rocm==": "7.14", "incast:": "2"}

// begins are command lines that an option's value is added to, by the command and by the option.
var begins = map[string]string{
	"run":         "run all_reduce --nodes 2 -b 64K -e 64K",
	"explain":     "explain all_reduce 64K --nodes 2",
	"plan":        "plan all_reduce 64K",
	"network run": "network run --ns3 config.txt",
	"topo fabric": "topo fabric leaf-spine --hosts 2 --nets 8",
	"env":         "env",
	"graph":       "graph",
	"inspect":     "inspect",
	"tune":        "tune",
}

// needs are what an option goes with, which its refusal names.
var needs = map[string]string{"balance": "--fabric net.json --network packet", "cc": "--network packet",
	"fault":               "--fabric net.json",
	"rccl-version":        "--topo mi300x-8-thor2 --nodes 1",
	"plan --rccl-version": "--topo mi300x-8-thor2 --env RCCL_DDA_ENABLE=0",
	"network run --fault": "", "network run --cc": "",
	"network run --routing": "--repair sr", "network run --traffic": "--span 100"}

// TestOffersAreAccepted: what Tab offers for an option's value is accepted by that command: with what the
// option needs, each ends with status 0.
func TestOffersAreAccepted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it runs a command for each value")
	}
	s := newShell(t)
	for _, set := range []string{"cp testdata/packets/*.txt .",
		"simccl topo fabric rail --hosts 2 --nets 8 > net.json"} {
		if _, errs, status := s.run(t, set); status != 0 {
			t.Fatalf("%s: %s", set, errs)
		}
	}
	n := 0
	for _, c := range commands(root.Command(&cli.App{})) {
		path := strings.TrimPrefix(c.CommandPath(), "simccl ")
		begin, found := begins[path]
		if !found {
			continue
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete, found := c.GetFlagCompletionFunc(f.Name)
			if !found {
				return
			}
			offers, _ := complete(c, nil, "")
			if f.Name == "topo" { // one shows that machines are meant
				offers = offers[:min(len(offers), 1)]
			}
			more, found := needs[path+" --"+f.Name]
			if !found {
				more = needs[f.Name]
			}
			for _, offer := range offers {
				value, _, _ := strings.Cut(offer, "\t")
				line := fmt.Sprintf("simccl %s %s --%s '%s'", begin, more, f.Name,
					value+cmp.Or(ends[path+" "+value], ends[value]))
				if _, errs, status := s.run(t, line); status != 0 {
					t.Errorf("%s: status %d: %s", line, status, errs)
				}
				n++
			}
		})
	}
	if n < 400 {
		t.Errorf("only %d values: how they are offered must have changed", n)
	}
}

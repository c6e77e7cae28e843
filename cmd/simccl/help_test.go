package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/spf13/cobra"
)

// commands lists a command and all below it, but what cobra adds.
func commands(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
			out = append(out, commands(sub)...)
		}
	}
	return out
}

// Every command has a sentence, and examples unless it only holds others.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands(root.Command(&cli.App{})) {
		if c.Short == "" {
			t.Errorf("%s: no sentence of what it does", c.CommandPath())
		}
		if c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s: no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 120 {
				t.Errorf("%s: wider than 120 columns: %s", c.CommandPath(), line)
			}
		}
	}
}

// Every example of a --help runs, in order, in a directory with the files that
// examples name.
func TestExamplesOfHelpRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every example; without -short")
	}
	s := siteShell(t)
	dgx, err := os.ReadFile(filepath.Join(s.dir, "testdata", "topos", "dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"topo.xml", "dgx.xml", "old.xml", "new.xml"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), dgx, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range []string{
		"mkdir ci && cp dgx.xml ci && git init -q .",
		"cp testdata/packets/*.txt testdata/packets/perm.cm testdata/packets/leafspine.topo .",
		"cp -r testdata/measured/h200x2/jobs/infer recording && rm recording/trace_graph*",
		"simccl workload gen --layers 4 --hidden 1024 --heads 8 --dp 4 --global-batch 4 -o ddp.txt",
		"cp testdata/measured/h200x4/logs/info_4.log.gz nccl.log.gz",
		"simccl topo fabric leaf-spine --hosts 2 --nets 8 --per-leaf 1 > net.json",
		"simccl run all_reduce --sizes 64K --trace real.json > measured.txt && cp real.json sim.json && " +
			"gzip sim.json",
		overlapTable,
		"printf 'exit 0\\n' > dot && chmod +x dot && mkdir bin && mv dot bin",
	} {
		if _, errs, status := s.run(t, set); status != 0 {
			t.Fatalf("%s: %s", set, errs)
		}
	}
	for i, v := range s.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			// Graphviz, or what replaces it
			s.env[i] = "PATH=" + filepath.Join(s.dir, "bin") + string(os.PathListSeparator) + path
		}
	}
	n, ran := 0, map[string]bool{}
	for _, c := range commands(root.Command(&cli.App{})) {
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			n++
			bare, _, _ := strings.Cut(line, " #")
			bare = strings.TrimSpace(bare)
			if ran[bare] {
				continue
			}
			ran[bare] = true
			if strings.Contains(line, "simccl calibrate") || strings.Contains(line, "h200.json") {
				continue // of measured times: testdata/script/calibrate.txtar
			}
			if strings.HasPrefix(line, "simccl serve") {
				continue // it serves until it is ended: app/cli/root
			}
			begun := time.Now()
			if needsDevice(line) {
				s.checkAbsent(t, line)
				continue
			}
			if _, errs, status := s.run(t, line); status != 0 {
				t.Errorf("%s --help: %s: exit status %d: %s", c.CommandPath(), line, status, errs)
			}
			t.Logf("%5.1fs %s", time.Since(begun).Seconds(), line)
		}
	}
	if n < 30 {
		t.Errorf("only %d examples: how they are marked must have changed", n)
	}
}

// siteShell is a shell in a directory with files of a site's network: two hosts with eight NICs at one
// switch.
func siteShell(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	writeSite(t, s.dir)
	return s
}

// writeSite writes a network of two hosts with eight NICs at one switch as ibnetdiscover prints it
// and as a table of cables, and the list of its hosts.
func writeSite(t *testing.T, dir string) {
	t.Helper()
	const leaf = "b8599f0300000100"
	cables, leafPorts, hosts := "host,nic,switch,switch port,speed\n", "", ""
	for i := range 16 {
		host, nic, guid := 1+i/8, i%8, fmt.Sprintf("b8599f03%08x", i+1)
		cables += fmt.Sprintf("n%d,mlx5_%d,leaf0,%d,400\n", host, nic, i+1)
		leafPorts += fmt.Sprintf("[%d]\t\"H-%s\"[1](%s) \t\t# \"n%d mlx5_%d\" lid 7 4xNDR\n", i+1, guid, guid,
			host, nic)
		hosts += fmt.Sprintf("caguid=0x%s\nCa\t1 \"H-%s\"\t\t# \"n%d mlx5_%d\"\n[1](%s) \t\"S-%s\"[%d]\t\t"+
			"# lid 8 lmc 0 \"leaf0\" lid 9 4xNDR\n\n", guid, guid, host, nic, guid, leaf, i+1)
	}
	for name, text := range map[string]string{"cables.csv": cables, "nodes.txt": "n[1-2]\n",
		"ibnetdiscover.txt": "#\n# Topology file: generated on Sun Nov 29 18:00:00 2026\n#\n\nswitchguid=0x" +
			leaf +
			"(" + leaf + ")\nSwitch\t16 \"S-" + leaf +
			"\"\t\t# \"MF0;leaf0:MQM9700/U1\" enhanced port 0 lid 1 lmc 0\n" +
			leafPorts + "\n" + hosts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// overlapTable writes a table of overlaps with one row.
const overlapTable = "printf '%s\\n' '# torch 2.11.0+cu130 nccl (2, 28, 9) NVIDIA H200 world 4' '## late: " +
	"all_reduce' 'all_reduce 1048576 rank 0 late 0.2 ms: 0.2213 0.2218 0.2209 0.2200' > overlap.txt"

// With --json every command that prints a result prints one JSON document.
func TestEveryCommandSpeaksJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it runs every command")
	}
	s := siteShell(t)
	for _, set := range []string{overlapTable,
		"simccl topo fabric --from cables.csv > net.json",
		"mkdir ci && echo '--nodes 1 -g 2' > ci/a.args && simccl check ci --update --json",
		"simccl run all_reduce --sizes 8 -g 2 --trace a.json --save-scenario s.json --json",
		"printf 'workload 1\\nranks 2\\ncomm w *\\nlist a 0-1\\n  call 0 w all_reduce float sum 8\\n' > " +
			"job.txt && simccl workload show job.txt --json",
		`printf '{"scenario": 1, "workload": {"job": "job.txt"}}' > job.json`,
		"printf 'base: {workload: {op: all_reduce}}\ngrid: {size: [8]}\n' > s.yaml"} {
		if _, errs, status := s.run(t, set); status != 0 {
			t.Fatalf("%s: %s", set, errs)
		}
	}
	said := map[string]bool{}
	for _, line := range []string{"run all_reduce --sizes 8 -g 2", "run --scenario job.json", "inspect -g 2",
		"explain all_reduce 8 -g 2", "diff all_reduce -g 2 --sizes 8 --b NCCL_ALGO=Ring",
		"topo show", "advise all_reduce -g 2 --sizes 64K", "topo lint testdata/topos/dgx-h100.xml",
		"topo diff testdata/topos/dgx-h100.xml testdata/topos/dgx-h200.xml", "topo convert",
		"topo fabric rail",
		"graph -g 2", "tune -g 2", "plan all_reduce 1K -g 2", "check ci", "env", "trace validate a.json",
		"trace stats a.json", "trace diff a.json a.json",
		"trace merge -o b.json a.json a.json",
		"bench all_reduce --backend host --nranks 2 --sizes 8 -n 1 -w 0", "report all_reduce --sizes 8 -g 2",
		"scenario show s.json", "scenario check s.json",
		"network run --ns3 testdata/packets/config.txt", "version", "topo list aws", "identify job.txt",
		"diagnose testdata/measured/h200x4/nccl-tests/chan_1_4.txt --verdict-only",
		"topo gen dgx-h100", "topo anonymize dgx-h100", "topo fabric show net.json",
		"topo fabric place net.json --hosts nodes.txt",
		"overlap overlap.txt", "replay testdata/measured/h200x2/jobs/infer/trace_rank0.json.gz " +
			"testdata/measured/h200x2/jobs/infer/trace_rank1.json.gz " +
			"testdata/measured/h200x2/jobs/infer/meta.json", "sweep s.yaml --out swept", "sweep plan s.yaml",
		"sweep emit slurm s.yaml", "sweep merge swept", "sweep status swept", "sweep show swept",
		"sweep search s.yaml --out found --points 2", "sweep search s.yaml --out swept --points 1",
		"groups testdata/measured/h200x4/groups/plain2.txt --topo testdata/topos/h200x4-2.xml",
		"workload show testdata/measured/h200x2/jobs/infer/trace_rank0.json.gz --symmetric",
		"workload lint testdata/measured/h200x2/jobs/infer/trace_rank0.json.gz --symmetric",
		"schedule show testdata/schedules/hier2x2.xml", "schedule check testdata/schedules/allpairs4.xml",
		"schedule convert testdata/schedules/packets2.json", "class show nvswitch-sm90",
		"class diff nvswitch-sm90 mesh-sm90",
		"class check testdata/measured/h200x2/calibrate/classes/two.json", "workload convert job.txt",
		"workload slice job.txt", "workload scale job.txt --dp 4",
		"workload gen --layers 2 --hidden 64 --heads 4 --vocab 128 --seq 32 --tp 2",
		"intercept --json -- true"} {
		out, errs, code := s.run(t, "simccl "+line+" --json")
		if code != cli.StatusOK && code != cli.StatusCheck {
			t.Errorf("%s: exit status %d: %s", line, code, errs)
		}
		if !json.Valid([]byte(out)) {
			t.Errorf("%s: no JSON: %.200s", line, out)
		}
		c, _, _ := root.Command(&cli.App{}).Find(strings.Fields(line))
		said[c.CommandPath()] = true
	}
	for _, c := range commands(root.Command(&cli.App{})) {
		// has no end of its own
		hardware := strings.HasPrefix(c.CommandPath(), "simccl calibrate") ||
			c.CommandPath() == "simccl bench verbs" || c.CommandPath() == "simccl topo detect" ||
			c.CommandPath() == "simccl serve"
		if !c.HasSubCommands() && !said[c.CommandPath()] && !hardware {
			t.Errorf("%s was not asked", c.CommandPath())
		}
	}
}

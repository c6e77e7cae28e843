package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
)

// attackStatus is what commands answer to the files of testdata/attack: topo lint
// first, then those that need a machine of the file. A file that is not named is
// refused by all.
var attackStatus = map[string][2]int{
	"nocpu.xml": {0, 8}, "nocpu3.xml": {0, 8}, "xinclude.xml": {0, 8}, // no GPU at all
	"nocpu2.xml": {7, 8}, "nocpu_min.xml": {7, 8}, "cpu_in_cpu.xml": {7, 8}, "gpu_in_gpu.xml": {7, 8},
	"gpu_under_nic.xml": {7, 8},
	"dupbus.xml":        {7, 8}, "nvlink_cycle.xml": {7, 8}, "width_99999999999999999999.xml": {7, 8},
	"nvlink_neg.xml": {7, 0},
	"sm_-1.xml":      {0, 0},
	"utf7decl.xml":   {0, 0}, "trailing.xml": {0, 0}, "tworoots.xml": {0, 0}, "nsattr.xml": {0, 0},
	"dupattr.xml": {0, 0}, "dupdev.xml": {0, 0},
	"utf16be.xml": {0, 0}, "dev_neg.xml": {0, 0}, "dev_of.xml": {0, 0}, "depth_62.xml": {0, 0},
	"nvlink_0.xml": {0, 0}, "nvlink_huge.xml": {0, 0}, "rank_gap.xml": {0, 0},
	"selfnvlink.xml": {0, 0}, "numa_99999999999999999999.xml": {0, 0}, "lat_-inf.xml": {0, 0},
}

// readers are the commands that read a topology; the first is topo lint.
var readers = []string{"topo lint", "topo show", "topo convert --fused", "inspect --topo", "graph --topo",
	"explain all_reduce 8 --topo", "run all_reduce --sizes 8 --topo"}

// attack runs a command on a file and returns its status and what it said.
func attack(t *testing.T, ctx context.Context, command, file string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(ctx, append(strings.Fields(command), file, "--no-env"),
		appOf(process.Process{Out: &out, Err: &errs}))
	if said := errs.String(); strings.Contains(said, "defect") || code == cli.StatusInternal {
		t.Errorf("simccl %s %s: status %d, %s", command, file, code, said)
	}
	return code, errs.String()
}

func TestAttackFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/attack/*.xml")
	if err != nil || len(files) < len(attackStatus) {
		t.Fatal("files are missing", len(files), err)
	}
	for _, file := range files {
		want, ok := attackStatus[filepath.Base(file)]
		if !ok {
			want = [2]int{cli.StatusInput, cli.StatusInput}
		}
		for i, command := range readers {
			if code, said := attack(t, t.Context(), command, file); code != want[min(i, 1)] {
				t.Errorf("simccl %s %s: status %d, want %d: %s", command, file, code, want[min(i, 1)], said)
			}
		}
	}
}

// TestAttackLargeFiles makes the inputs that took minutes; here each is read by all
// commands in one test.
func TestAttackLargeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: files of many megabytes")
	}
	var attrs, gpus, cpus strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&attrs, " a%d=\"1\"", i)
	}
	gpu := func(b *strings.Builder, i int) {
		fmt.Fprintf(b, `<pci busid="%04x:%02x:%02x.0" class="0x030200"><gpu dev="%d" sm="80" gdr="1"/></pci>`,
			i>>13, i>>5&255, i&31, i)
	}
	for i := range 10_000 {
		gpu(&gpus, i)
	}
	for i := range 599 {
		fmt.Fprintf(&cpus, `<cpu numaid="%d">`, i)
		gpu(&cpus, i)
		cpus.WriteString("</cpu>")
	}
	system := func(text string) string { return `<system version="1">` + text + "</system>" }
	for name, c := range map[string]struct{ text, want string }{
		"attributes": {system(`<cpu numaid="0"` + attrs.String() + "/>"), "40001 attributes, more than 256"},
		"gpus": {system(`<cpu numaid="0">` + gpus.String() + "</cpu>"),
			"10000 GPUs in one NVLink domain"},
		"cpus": {system(cpus.String()), "599 <cpu> elements in one NVLink domain"},
		"value": {`<system version="1" name="` + strings.Repeat("x", 15<<20) + `"/>`,
			"longer than 4096 bytes"},
		"names": {system(strings.Repeat("<"+strings.Repeat("y", 300)+"/>", 1000)),
			"an element's name of more than 256 bytes"},
		"unknown": {system(strings.Repeat("<rack/>", 99_000)), "and 98990 more of this kind"},
		"nested":  {system(strings.Repeat("<rack>", 70)), "more than 64 levels"},
	} {
		file := filepath.Join(t.TempDir(), name+".xml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, said := attack(t, t.Context(), "topo diff ../../testdata/topos/dgx-h100.xml", file); code !=
			cli.StatusCheck && code != cli.StatusInput {
			t.Errorf("%s: simccl topo diff: status %d: %.300s", name, code, said)
		}
		for i, command := range readers {
			code, said := attack(t, t.Context(), command, file)
			if i == 0 && code == cli.StatusCheck || name == "unknown" && i == 0 {
				continue // lint prints findings
			}
			if code != cli.StatusInput || !strings.Contains(said, c.want) {
				t.Errorf("%s: simccl %s: status %d, want %q in %.300s", name, command, code, c.want, said)
			}
			if len(said) > 20_000 {
				t.Errorf("%s: simccl %s says %d bytes", name, command, len(said))
			}
		}
	}
}

// TestEndlessInputs names devices and folders where files belong: each ends with
// the status of an invalid input.
func TestEndlessInputs(t *testing.T) {
	names := []string{t.TempDir()}
	if _, err := os.Stat("/dev/zero"); err == nil {
		names = append(names, "/dev/zero")
	}
	commands := append([]string{"run all_reduce --sizes 8 --fabric",
		"run all_reduce --sizes 8 --machine-class", "run all_reduce --sizes 8 --report " +
			filepath.Join(t.TempDir(), "page.html") + " --measured",
		"topo diff ../../testdata/topos/dgx-h100.xml"}, readers...)
	for _, name := range names {
		for i, command := range commands {
			if testing.Short() && name == "/dev/zero" && i%4 != 0 {
				continue
			}
			if code, said := attack(t, t.Context(), command, name); code != cli.StatusInput {
				t.Errorf("simccl %s %s: status %d: %s", command, name, code, said)
			}
		}
		var errs bytes.Buffer
		if code := run(t.Context(), []string{"graph", "--env", "NCCL_GRAPH_FILE=" + name},
			appOf(process.Process{Out: &errs, Err: &errs})); code != cli.StatusInput {
			t.Errorf("NCCL_GRAPH_FILE=%s: status %d: %s", name, code, errs.String())
		}
		errs.Reset()
		if code := run(t.Context(), []string{"env", "--no-env", "--env", "NCCL_CONF_FILE=" + name},
			appOf(process.Process{Out: &errs, Err: &errs})); code != cli.StatusOK ||
			!strings.Contains(errs.String(), "cannot be read") {
			t.Errorf("NCCL_CONF_FILE=%s: status %d: %s", name, code, errs.String())
		}
	}
}

// TestPipeWithoutWriter interrupts a command that waits for a pipe.
func TestPipeWithoutWriter(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	for _, command := range append([]string{"run all_reduce --sizes 8 --fabric"}, readers...) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if code, said := attack(t, ctx, command, pipe); code == cli.StatusOK {
			t.Errorf("simccl %s: status %d: %s", command, code, said)
		}
	}
}

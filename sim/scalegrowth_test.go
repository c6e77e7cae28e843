package sim_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

const growthHead = "## Growth in ranks\n"

const growthText = growthHead + `
One command a cell, ` + "`simccl run OP -b SIZE -e SIZE --nodes N -c 0`" + ` on DGX H100s of 8 GPUs by default choice: CPU of the whole command and its
largest memory, with those of reading the machine and joining a communicator of so many ranks. *near*: with a margin, as the
command says. *refused*: with the memory and the time that it would take. The limits that the project set itself are 1 s for
1,024 ranks, 3 s for 102,400, and 30 s and 2 GiB for 1,048,576. Where SIZE is fewer bytes than ranks, all_gather,
reduce_scatter, alltoall, gather and scatter have nothing to do, as in nccl-tests.

| operation | size | 1,024 | 102,400 | 1,048,576 |
|---|---|---|---|---|
`

// TestScaleGrowth writes the growth in ranks into docs/results/SCALE.md.
func TestScaleGrowth(t *testing.T) {
	tool := scaleTool(t)
	var b strings.Builder
	b.WriteString(growthText)
	for _, op := range []string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
		"sendrecv", "alltoall", "gather", "scatter"} {
		for _, size := range []string{"8", "1M", "1G"} {
			row := fmt.Sprintf("| %s | %s |", op, size)
			for _, nodes := range []int{128, 12800, 131072} {
				row += fmt.Sprintf(" %s |", growthCell(t, tool, op, size, nodes))
			}
			t.Log(row)
			b.WriteString(row + "\n")
		}
	}
	writeSection(t, growthHead, b.String())
}

const bytesHead = "## Growth in bytes\n"

const bytesText = bytesHead + `
The same on 2 and 8 nodes (16 and 64 ranks), where jitter is drawn: CPU of the whole command by size. *window*: iterations of
large sizes were counted, within 3 % (docs/adr/0018).

| operation | ranks | 8 | 1M | 64M | 1G | 16G |
|---|---|---|---|---|---|---|
`

// TestScaleGrowthInBytes writes the growth in bytes into docs/results/SCALE.md.
func TestScaleGrowthInBytes(t *testing.T) {
	tool := scaleTool(t)
	var b strings.Builder
	b.WriteString(bytesText)
	for _, op := range []string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
		"sendrecv", "alltoall", "gather", "scatter"} {
		for _, nodes := range []int{2, 8} {
			row := fmt.Sprintf("| %s | %d |", op, 8*nodes)
			for _, size := range []string{"8", "1M", "64M", "1G", "16G"} {
				row += fmt.Sprintf(" %s |", growthCell(t, tool, op, size, nodes))
			}
			t.Log(row)
			b.WriteString(row + "\n")
		}
	}
	writeSection(t, bytesHead, b.String())
}

// writeSection puts a section into docs/results/SCALE.md, in place of the one with its heading
// or at the end.
func writeSection(t *testing.T, head, text string) {
	t.Helper()
	writeSectionIn(t, "SCALE.md", head, text)
}

// writeSectionIn puts a section into a page of docs.
func writeSectionIn(t *testing.T, page, head, text string) {
	t.Helper()
	file := golden.Root(t, "docs", "results", page)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(raw)
	if old := sectionOf(whole, head); old != "" {
		whole = strings.Replace(whole, strings.TrimRight(old, "\n"), strings.TrimRight(text, "\n"), 1)
	} else {
		whole = strings.TrimRight(whole, "\n") + "\n\n" + text
	}
	if err := os.WriteFile(file, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sectionOf is what a page has from a heading to the next one.
func sectionOf(page, head string) string {
	at := strings.Index(page, head)
	if at < 0 {
		return ""
	}
	section := page[at:]
	if next := strings.Index(section[len(head):], "\n## "); next >= 0 {
		section = section[:len(head)+next+1]
	}
	return section
}

// scaleTool is the command, where figures are asked for: SIMCCL, which make builds as
// it is released, or built here.
func scaleTool(t *testing.T) string {
	t.Helper()
	if os.Getenv("SIMCCL_SCALE") == "" {
		t.Skip("measures time on a quiet machine: make scale")
	}
	if name := os.Getenv("SIMCCL"); name != "" {
		return name
	}
	tool := filepath.Join(t.TempDir(), "simccl")
	if out, err := exec.Command("go", "build", "-o", tool,
		"github.com/simccl/simccl/cmd/simccl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tool
}

// notAvailable is the exit status of what is not available.
const notAvailable = 5

// growthCell is what a command took. Its output is not kept: the memory of this
// process would count as the command's, which begins as a copy of it.
func growthCell(t *testing.T, tool, op, size string, nodes int) string {
	t.Helper()
	cmd := exec.Command(tool, "run", op, "-b", size, "-e", size, "--nodes", fmt.Sprint(nodes), "-c", "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	near := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch {
		case bytes.HasPrefix(lines.Bytes(), []byte("# Near")):
			near = ", near"
		case bytes.Contains(lines.Bytes(), []byte("a window of iterations")):
			near = ", window"
		}
	}
	err = cmd.Wait()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() == notAvailable {
		return "refused"
	}
	if err != nil {
		t.Fatalf("%s %s on %d nodes: %v", op, size, nodes, err)
	}
	state := cmd.ProcessState
	return fmt.Sprintf("%.2f s, %d MB%s", state.UserTime().Seconds(),
		state.SysUsage().(*syscall.Rusage).Maxrss>>10, near)
}

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/dev/golden"
)

// longCommand is a command of which a signal can hit any phase.
type longCommand struct {
	name  string
	args  string
	files string // that it writes
}

// longCommands are the commands that can take long, at sizes that take a part of
// a second. Each runs in a directory of its own beside what prepare made.
var longCommands = []longCommand{
	{"run with outputs", "run all_reduce --sizes 4M -c 0 --trace t.json.gz --profile p.pb.gz --ops f.csv",
		"t.json.gz p.pb.gz f.csv"},
	{"run with proof", "run all_reduce --nodes 4 -b 8 -e 4M -f 2 -c 1", ""},
	{"run unfolded",
		"run all_reduce --nodes 4 --fold off --sizes 4M -c 0 --trace t.json --cpuprofile c.pb.gz",
		"t.json c.pb.gz"},
	{"run large", "run all_reduce --nodes 1000 --sizes 1K -c 0", ""},
	{"report", "report all_reduce -g 4 -b 64K -e 4M -f 8 --report r.html", "r.html"},
	{"trace validate", "trace validate ../t.json.gz", ""},
	{"trace stats", "trace stats ../t.json.gz", ""},
	{"trace diff", "trace diff ../t.json.gz ../t.json.gz", ""},
	{"trace merge", "trace merge -o m.json.gz ../t.json.gz ../t.json.gz", "m.json.gz"},
	{"calibrate fit", "calibrate fit ../times --topo ../h200x4-4.xml --quantities gap_ll --out c.json",
		"c.json"},
	{"explain", "explain all_reduce 2M --nodes 20000", ""},
	{"inspect", "inspect --nodes 500 --json", ""},
	{"parse", "topo lint ../large.xml", ""},
	{"plan", "plan all_reduce 16M --nodes 16 --format csv", ""},
	{"bench sockets",
		"bench all_reduce --backend sockets --nranks 3 -b 8 -e 4K -f 32 -n 5 -w 1 --trace b.json", "b.json"},
}

// prepare makes what the commands read.
func prepare(t *testing.T, dir string) {
	t.Helper()
	copyIn := func(to string, from ...string) {
		b, err := os.ReadFile(golden.Root(t, from...))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "times"), 0o700); err != nil {
		t.Fatal(err)
	}
	copyIn("times/default.all_gather.json", "testdata", "measured", "h200x4", "calibrate", "first",
		"default.all_gather.json")
	copyIn("h200x4-4.xml", "testdata", "topos", "h200x4-4.xml")
	var large strings.Builder
	large.WriteString(
		`<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">` + "\n")
	for i := range 8000 {
		fmt.Fprintf(&large,
			`  <pci busid="0000:%02x:%02x.%x" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"/>`+
				"\n", i>>8, i>>3&0x1f, i&7)
	}
	large.WriteString("</cpu></system>\n")
	err := os.WriteFile(filepath.Join(dir, "large.xml"), []byte(large.String()), 0o600)
	if err == nil {
		err = simcclIn(dir, "run all_reduce --sizes 4M -c 0 --trace t.json.gz").Run()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// simcclIn is a command line to run in a directory, with its temporary files in
// the directory's tmp.
func simcclIn(dir, line string) *exec.Cmd {
	c := exec.Command("simccl", append(strings.Fields(line), "--no-env")...)
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"))
	return c
}

const oldText = "what was there before\n"

// placeFiles makes a directory with an old file under each name, and returns what is
// in it.
func placeFiles(t *testing.T, dir, files string) map[string]string {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "tmp"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, f := range strings.Fields(files) {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(oldText), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filesIn(t, dir)
}

// filesIn reads all files below a directory, directories as empty ones.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		text := ""
		if !info.IsDir() {
			var b []byte
			b, err = os.ReadFile(path)
			text = string(b)
		}
		all[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// endsAfter runs a command, sends it a signal after so long, and returns how long
// it took to end, its exit status as a shell shows it, and standard error.
func endsAfter(t *testing.T, dir string, c longCommand, sig syscall.Signal,
	after time.Duration) (time.Duration, int, string) {
	t.Helper()
	p := simcclIn(dir, c.args)
	var errs bytes.Buffer
	p.Stdout, p.Stderr = io.Discard, &errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = p.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(after):
	}
	sent := time.Now()
	_ = p.Process.Signal(sig)
	select {
	case <-ended:
	case <-time.After(20 * time.Second): // 20 times what is allowed
		_ = p.Process.Kill()
		<-ended
		t.Fatalf("%v after %v: still there 20 s later\n%s", sig, after, errs.String())
	}
	state, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() { // before it could listen: in its first millisecond
		return time.Since(sent), 128 + int(state.Signal()), errs.String()
	}
	return time.Since(sent), p.ProcessState.ExitCode(), errs.String()
}

// check holds what an ended command left to what it may leave: all files where it
// had finished, else each as it was before, or whole.
func (c longCommand) check(t *testing.T, sig syscall.Signal, before, whole, after map[string]string, status,
	finished int, errs string) (interrupted bool) {
	t.Helper()
	if status != finished && status != 128+int(sig) {
		t.Errorf("%v: exit status %d, want %d, or %d at its end: %s", sig, status, 128+int(sig), finished,
			errs)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		text, old := after[name], before[name]
		if _, known := before[name]; !known {
			t.Errorf("%v, exit status %d: leaves a file %s of %d bytes", sig, status, name, len(text))
		} else if text != whole[name] && !json.Valid([]byte(text)) && !wholeGzip(text) &&
			(text != old || status == finished) {
			t.Errorf("%v, exit status %d: leaves %s with %d bytes; before %d, whole %d", sig, status, name,
				len(text), len(old), len(whole[name]))
		}
	}
	if len(after) < len(before) {
		t.Errorf("%v, exit status %d: files %v, before %v", sig, status, slices.Sorted(maps.Keys(after)),
			slices.Sorted(maps.Keys(before)))
	}
	if status == finished {
		return false
	}
	if n := strings.Count(errs, "simccl: interrupted\n") + strings.Count(errs, "simccl: terminated\n"); n >
		1 || n == 0 && errs != "" {
		t.Errorf("%v: it says %q", sig, errs)
	}
	return true
}

// wholeGzip reports whether a file is compressed data with its end: a CPU profile
// is never the same twice.
func wholeGzip(text string) bool {
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, z)
	return err == nil
}

// TestSignalsEndEveryCommand sends SIGINT and SIGTERM at random moments of each
// long command, drawn over the time that it takes: it ends with 130 or 143, leaves
// no file that is not whole, and what was there before stays.
func TestSignalsEndEveryCommand(t *testing.T) {
	commands, moments := longCommands, 20
	if testing.Short() { // of each way to write files one, and three that write none
		commands, moments = golden.Few(longCommands, 3), 2
	}
	if golden.UnderRace {
		t.Skip("commands of their own processes share nothing; without the race detector")
	}
	root := t.TempDir()
	prepare(t, root)
	dir := filepath.Join(root, "here")
	for i, c := range commands {
		t.Run(c.name, func(t *testing.T) {
			placeFiles(t, dir, c.files)
			begun := time.Now()
			p := simcclIn(dir, c.args)
			text, err := p.CombinedOutput()
			if err != nil && p.ProcessState.ExitCode() < 0 {
				t.Fatal(err)
			}
			took, finished, whole := time.Since(begun), p.ProcessState.ExitCode(), filesIn(t, dir)
			for _, f := range strings.Fields(c.files) {
				if finished != 0 || whole[f] == oldText {
					t.Fatalf("exit status %d, %s is not written: %s", finished, f, text)
				}
			}
			rng := rand.New(rand.NewPCG(14, uint64(i)))
			interrupted := 0
			for m := range moments {
				before := placeFiles(t, dir, c.files)
				part := (float64(m) + rng.Float64()) / float64(moments)
				if m == 0 { // certain to come in time, also where the measured time was a busy machine's
					part = rng.Float64() / 20
				}
				after := time.Duration(part * float64(took))
				sig := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[m%2]
				again := time.Now()
				_, status, errs := endsAfter(t, dir, c, sig, after)
				if c.check(t, sig, before, whole, filesIn(t, dir), status, finished, errs) {
					interrupted++
				} else { // the first time was a busier machine's
					took = min(took, time.Since(again))
				}
			}
			t.Logf("%d of %d signals came while it ran, in %v", interrupted, moments,
				took.Round(time.Millisecond))
			if interrupted == 0 {
				t.Error("no signal came while the command ran")
			}
		})
	}
}

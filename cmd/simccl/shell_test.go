package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/dev/golden"
)

// shell runs command lines as a user types them, with simccl on the path and
// the project's topology files beside it.
type shell struct {
	dir string
	env []string
}

// newShell makes an empty directory with testdata in it.
func newShell(t *testing.T) *shell {
	t.Helper()
	if golden.UnderRace {
		t.Skip("commands of their own processes share nothing; without the race detector")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here: ", err)
	}
	s := &shell{dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, l := range [][2]string{{self, filepath.Join(bin, "simccl")}, {golden.Root(t, "testdata"),
		filepath.Join(s.dir, "testdata")}} {
		if err := os.Symlink(l[0], l[1]); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	s.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+s.dir)
	return s
}

// commandTime bounds how long a command may go on once the test is over.
const commandTime = 20 * time.Minute

// run runs a line and returns what it printed and its exit status.
func (s *shell) run(t *testing.T, line string) (out, errs string, status int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir, c.Env, c.WaitDelay = s.dir, s.env, commandTime
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

// needsDevice reports whether a command line is for hardware: it ends here with
// status 9, unless a device is there, when it is left alone.
func needsDevice(line string) bool {
	for _, c := range []string{"simccl bench ", "simccl calibrate --out", "simccl calibrate measure",
		"simccl topo detect"} {
		if strings.Contains(line, c) && !strings.Contains(line, "--backend sockets") &&
			!strings.Contains(line, "--backend host") {
			return true
		}
	}
	return false
}

// checkAbsent runs a command for hardware where there is none. Launchers and
// other hosts are not there either.
func (s *shell) checkAbsent(t *testing.T, line string) {
	t.Helper()
	if devices, _ := filepath.Glob("/dev/nvidia*"); len(devices) > 0 {
		t.Logf("left out on a machine with devices: %s", line)
		return
	}
	for _, launcher := range []string{"torchrun", "mpirun", "srun", "--root-address"} {
		if strings.Contains(line, launcher) {
			t.Logf("not executed, it needs several machines or a launcher: %s", line)
			return
		}
	}
	if _, errs, code := s.run(t, line); code != cli.StatusAbsent {
		t.Errorf("%s: exit status %d without hardware, want %d: %s", line, code, cli.StatusAbsent, errs)
	}
}

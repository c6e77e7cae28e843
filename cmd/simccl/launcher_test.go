package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/require"
)

// launchers start ranks as their users do, all of this machine: MPICH also as if
// it were two hosts. (Open MPI's daemons do not always start twice on one
// machine, whatever they are to run; config/testdata/launch has what they set.)
var launchers = []struct{ name, program, args string }{
	{"Open MPI", "mpirun.openmpi", "--oversubscribe -n 3"},
	{"MPICH", "mpirun.mpich", "-n 3"},
	{"MPICH between hosts", "mpirun.mpich", "-launcher fork -hosts h1,h2 -ppn 2 -n 3"},
}

// TestRealLaunchers has the launchers that are installed start bench, twice at
// the same time: runs of one host do not disturb each other.
func TestRealLaunchers(t *testing.T) {
	self, err := exec.LookPath("simccl") // of testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // for the key that ranks share where a launcher gives none
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) {
			if _, err := exec.LookPath(l.program); err != nil {
				t.Skip("no ", l.program, " here")
			}
			args := append(strings.Fields(l.args), self,
				"bench", "all_gather", "--backend", "sockets", "-b", "96", "-e", "96K", "-f", "32", "-n", "2",
				"-w", "0")
			first, second := launch(t, l.program, args), launch(t, l.program, args)
			for _, p := range []*rankProcess{first, second} {
				if err := p.wait(t, processTime); err != nil {
					t.Fatalf("%v\n%s%s", err, p.out.String(), p.err.String())
				}
				if s := p.out.String(); strings.Count(s, "# Out of bounds values : 0 OK") != 1 ||
					strings.Count(s, "#  Rank ") != 3 {
					t.Errorf("want one table of three ranks:\n%s", s)
				}
			}
		})
	}
}

func launch(t *testing.T, program string, args []string) *rankProcess {
	t.Helper()
	p := &rankProcess{Cmd: exec.Command(program, args...), ended: make(chan error, 1)}
	p.Stdout, p.Stderr = &p.out, &p.err
	p.Env = append(p.Environ(), require.MPIEnv(t)...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	go func() { p.ended <- p.Wait() }()
	return p
}

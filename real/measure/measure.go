package measure

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/team"
)

// TopologyFile is the name of the machine's topology in a directory of measured times.
const TopologyFile = "topo.xml"

// Plan says what to measure.
type Plan struct {
	Sets   []Set
	GPUs   int           // the first GPUs of the machine, this many; 0: all
	Budget time.Duration // no further set is started after this time
	Dir    string        // directory for the files, created if absent
	// Topology returns the text of TopologyFile.
	Topology func() ([]byte, error)
	// Command starts one rank of a set: a program that calls Set.Rank. The set's environment is added to that
	// of the command.
	Command func(ctx context.Context, s *Set, rank, ranks int, root string) *exec.Cmd
	// Measured is called for each completed set; Left for the first set that the budget excludes.
	Measured func(s *Set, took time.Duration)
	Left     func(s *Set, spent time.Duration)
}

// Count returns the number of GPUs that take part if the first asked are requested; 0: all.
func Count(asked int) (int, error) {
	d, err := cuda.Open()
	if err != nil {
		return 0, err
	}
	n := cmp.Or(asked, d.Count())
	if n < 1 || n > d.Count() {
		return 0, team.Refuse("-g %d: from 1 GPU on, and this machine has %d", n, d.Count())
	}
	return n, nil
}

// Run measures every set.
func (p *Plan) Run(ctx context.Context) error {
	n, err := Count(p.GPUs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return team.Input(err)
	}
	text, err := p.Topology()
	if err != nil {
		return err
	}
	if err := newfile.Write(filepath.Join(p.Dir, TopologyFile), text); err != nil {
		return err
	}
	began := time.Now()
	for i := range p.Sets {
		s := &p.Sets[i]
		if spent := time.Since(began); spent > p.Budget {
			p.Left(s, spent)
			break
		}
		ranks := n
		if s.GPUs > 0 {
			ranks = s.GPUs
		}
		if s.GPUs >= n || n == 1 && (len(s.Env) > 0 || s.Beside) {
			continue // already measured by default; a single rank has no algorithms
		}
		at := time.Now()
		if err := p.start(ctx, s, ranks); err != nil {
			return fmt.Errorf("measure %s: %w", s.Name, err)
		}
		p.Measured(s, time.Since(at))
	}
	return nil
}

// setLimit bounds the time of the processes of a set; a set takes about ten seconds.
const setLimit = 90 * time.Second

// start runs a set, with one process per GPU, and waits for all.
func (p *Plan) start(ctx context.Context, s *Set, ranks int) error {
	port, err := unusedPort()
	if err != nil {
		return err
	}
	key, err := bootstrap.NewSecret() // for the processes of this set only
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, setLimit)
	defer stop()
	var said bytes.Buffer // output of rank 0
	var failed error
	var procs []*exec.Cmd
	for r := range ranks {
		c := p.Command(ctx, s, r, ranks, fmt.Sprintf("127.0.0.1:%d", port))
		c.Env = append(append(c.Env, s.Env...), team.SecretVariable+"="+hex.EncodeToString(key[:]))
		if r == 0 {
			c.Stderr = &said
		}
		if failed = c.Start(); failed != nil {
			stop()
			break
		}
		procs = append(procs, c)
	}
	for r, c := range procs {
		if err := c.Wait(); err != nil && failed == nil {
			failed = fmt.Errorf("process %d: %w: %s", r, err, strings.TrimSpace(said.String()))
		}
	}
	return failed
}

func unusedPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

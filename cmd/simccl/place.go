package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/simccl/simccl/real/team"
	"github.com/spf13/pflag"
)

// placeFlags say which of how many processes this is.
type placeFlags struct {
	rank, nranks int
	root         string
	secret       secretFlags
}

func (p *placeFlags) register(f *pflag.FlagSet) {
	f.IntVar(&p.rank, "rank", -1, "this process's `RANK`, where no launcher says it")
	f.IntVar(&p.nranks, "nranks", 0, "number of ranks; without --rank all are of this process")
	f.StringVar(&p.root, "root-address", "", "`HOST:PORT` where rank 0 listens")
	p.secret.register(f)
}

// find reads flags before the launcher's environment.
func (p *placeFlags) find(a *app) (team.Place, error) {
	f := team.Finder{Rank: p.rank, NRanks: p.nranks, Root: p.root, Getenv: a.getenv,
		Secret: func(loopback bool) (team.Secret, error) { return p.secret.read(a, loopback) }}
	at, err := f.Find()
	if a.last != nil {
		a.last.Peers.Store(at.Rank >= 0 && at.NRanks > 1)
	}
	return at, err
}

// secretFlags say what the processes of a run share and others do not know.
type secretFlags struct{ file, word string }

func (s *secretFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.file, "secret-file", "", "`FILE` with the secret that all ranks share (default $SIMCCL_SECRET, else a key of this user's, made at first use)")
	f.StringVar(&s.word, "secret", "", "`WORD` in place of it; every user of the host can read it in the list of processes")
}

// read finds the secret: --secret-file, --secret, SIMCCL_SECRET, or this user's
// own key. loopback says that all processes are on this host. --no-env does not
// hide the variable: that option is about settings, and leaving a secret out
// would open the door.
func (s *secretFlags) read(a *app, loopback bool) (team.Secret, error) {
	switch {
	case s.file != "" && s.word != "":
		return nil, usage("--secret and --secret-file: write one of them")
	case s.file != "":
		b, err := os.ReadFile(a.path(s.file))
		if err != nil {
			return nil, input(fmt.Errorf("--secret-file: %w", err))
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			return nil, input(fmt.Errorf("--secret-file %s: the file is empty; `openssl rand -hex 16` writes a secret", s.file))
		}
		return b, nil
	case s.word != "":
		a.warn("--secret is visible in the process list to every user of this host; write --secret-file FILE or set %s", team.SecretVariable)
		return team.Secret(s.word), nil
	}
	sub := *a
	sub.noEnv = false
	if v, _ := sub.getenv(team.SecretVariable); v != "" {
		return team.Secret(v), nil
	}
	return team.UserKey(loopback)
}

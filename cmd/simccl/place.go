package main

import (
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
	f := team.Finder{Rank: p.rank, NRanks: p.nranks, Root: p.root, Getenv: a.Getenv,
		Secret: func(loopback bool) (team.Secret, error) { return p.secret.read(a, loopback) }}
	at, err := f.Find()
	if a.Line != nil {
		a.Line.Peers.Store(at.Rank >= 0 && at.NRanks > 1)
	}
	return at, err
}

// secretFlags say what the processes of a run share and others do not know.
type secretFlags struct{ file, word string }

func (s *secretFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.file, "secret-file", "", "`FILE` with the secret that all ranks share (default "+
		"$SIMCCL_SECRET, else a key of this user's, made at first use)")
	f.StringVar(&s.word, "secret", "",
		"`WORD` in place of it; every user of the host can read it in the list of processes")
}

// read finds the secret: --secret-file, --secret, SIMCCL_SECRET, or this user's
// own key. loopback says that all processes are on this host. --no-env does not
// hide the variable: that option is about settings, and leaving a secret out
// would open the door.
func (s *secretFlags) read(a *app, loopback bool) (team.Secret, error) {
	env := *a
	env.NoEnv = false
	g := team.Given{File: s.file, Word: s.word, Getenv: env.Getenv, Warn: a.Warn,
		Read: func(file string) ([]byte, error) { return os.ReadFile(a.Path(file)) }}
	return g.Find(loopback)
}

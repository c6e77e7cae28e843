package cli

import (
	"os"

	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/real/team"
	"github.com/spf13/cobra"
)

// PlaceFlags identify this process and the number of processes.
type PlaceFlags struct {
	Rank, Ranks int    // -1 and 0: a launcher's variables say it, else the process is alone
	Root        string // HOST:PORT of rank 0
	Secret      Secret
}

// Register declares the options.
func (p *PlaceFlags) Register(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(processes,
		flags.Of(&p.Rank, "rank", "", -1, "`RANK` of this process, where no launcher says it"),
		flags.Of(&p.Ranks, "nranks", "", 0, "number `N` of ranks; without --rank all are of this process",
			"Ranks"),
		flags.Of(&p.Root, "root-address", "", "", "`ADDRESS` where rank 0 listens, HOST:PORT")))
	p.Secret.Register(c)
}

// processes is the title of the flags' group in help.
const processes = "Processes"

// Find returns the place of this process: from the flags, else from the launcher's environment.
func (p *PlaceFlags) Find(a *App) (team.Place, error) {
	f := team.Finder{Rank: p.Rank, NRanks: p.Ranks, Root: p.Root, Getenv: a.Getenv,
		Secret: func(loopback bool) (team.Secret, error) { return p.Secret.Read(a, loopback) }}
	at, err := f.Find()
	if a.Line != nil {
		a.Line.Peers.Store(at.Rank >= 0 && at.NRanks > 1)
	}
	return at, err
}

// Secret is the word that the processes of a run share and others must not know: the name of its file, or the
// word itself.
type Secret struct{ File, Word string }

// Register declares the options.
func (s *Secret) Register(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(processes,
		flags.Of(&s.File, "secret-file", "", "",
			"`FILE` with the secret that all ranks share (default $SIMCCL_SECRET, else a "+
				"key of this user's, made at first use)"),
		flags.Of(&s.Word, "secret", "", "",
			"secret `WORD` in place of it; every user of the host can read it in the list of "+
				"processes")))
}

// Read returns the secret: of --secret-file, --secret, SIMCCL_SECRET, or this user's own key. loopback: all
// processes are on this host. --no-env does not hide the variable: that option concerns settings, and to omit
// a secret would weaken security.
func (s *Secret) Read(a *App, loopback bool) (team.Secret, error) {
	env := *a
	env.NoEnv = false
	g := team.Given{File: s.File, Word: s.Word, Getenv: env.Getenv, Warn: a.Warn,
		Read: func(file string) ([]byte, error) { return os.ReadFile(a.Path(file)) }}
	return g.Find(loopback)
}

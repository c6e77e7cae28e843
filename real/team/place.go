package team

import (
	"fmt"
	"net"
	"strconv"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/sock"
)

// Place is the rank of this process and the number of ranks.
type Place struct {
	// Rank is -1 if this process was started alone; NRanks is then the number of ranks that it runs itself, 0
	// if not given.
	Rank, NRanks int

	id    bootstrap.ID
	guess string // launcher from whose host the address of rank 0 was guessed
	// share sends rank 0's word to all ranks, if the launcher can; rank 0 then listens on listen.
	share  func(word string) (string, error)
	listen string
}

// Alone returns the place of a process without others.
func Alone(nranks int) Place { return Place{Rank: -1, NRanks: nranks} }

// Finder holds the sources from which a place is found.
type Finder struct {
	Rank, NRanks int    // from options; Rank below 0: not given
	Root         string // HOST:PORT, from an option
	Getenv       func(name string) (string, bool)
	// Secret returns the secret of the processes; loopback says that all are on this host.
	Secret func(loopback bool) (Secret, error)
}

// Find returns the place that options give or, without these, the launcher's environment.
func (f *Finder) Find() (Place, error) {
	if f.Rank < 0 && f.NRanks > 0 {
		return Alone(f.NRanks), nil
	}
	l, err := f.launch()
	if err != nil {
		return Place{}, err
	}
	switch {
	case f.Rank < 0 && l.By == "":
		return Alone(0), nil
	case l.Ranks < 1 || l.Rank >= l.Ranks:
		return Place{}, Refuse("--rank %d --nranks %d: ranks go from 0 to one less than their number", l.Rank,
			l.Ranks)
	case l.PMI > 0:
		return f.byPMI(&l)
	case l.Root == "" && l.Ranks > 1:
		return Place{},
			Refuse("where does rank 0 listen? write --root-address HOST:PORT, or set NCCL_COMM_ID=HOST:PORT")
	case l.Root == "":
		l.Root = "127.0.0.1:0"
	}
	if err := checkRoot(l.Root, l.Ranks); err != nil {
		return Place{}, err
	}
	out := Place{Rank: l.Rank, NRanks: l.Ranks, id: bootstrap.ID{Addr: l.Root}}
	if l.Guess {
		out.guess = l.By
	}
	if l.Ranks == 1 {
		out.id.Secret, err = bootstrap.NewSecret()
		return out, err
	}
	secret, err := f.Secret(l.OneHost || Loopback(l.Root))
	if err != nil {
		return Place{}, err
	}
	out.id.Secret = secret.Key("bench\n" + l.Job)
	return out, nil
}

// launch returns how this process was started, from options or the environment.
func (f *Finder) launch() (config.Launch, error) {
	if f.Rank >= 0 {
		l := config.Launch{Rank: f.Rank, Ranks: f.NRanks, Root: f.Root}
		if id, ok := f.Getenv("NCCL_COMM_ID"); l.Root == "" && ok {
			l.Root = id
		}
		l.Job = "flags " + l.Root
		return l, nil
	}
	l, err := config.FindLaunch(f.Getenv)
	if err != nil {
		return l, Refuse("%v", err)
	}
	if l.By != "" && f.Root != "" {
		l.Root, l.Guess, l.PMI = f.Root, false, 0
	}
	return l, nil
}

// checkRoot validates HOST:PORT.
func checkRoot(root string, ranks int) error {
	_, port, err := net.SplitHostPort(root)
	if err != nil {
		return Refuse("root %s: %v; write HOST:PORT", root, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && ranks > 1 {
		return Refuse("root %s: port %s: ports go from 1 to 65535", root, port)
	}
	return nil
}

// byPMI returns a place whose ranks learn the root's address through the launcher's PMI.
func (f *Finder) byPMI(l *config.Launch) (Place, error) {
	out := Place{Rank: l.Rank, NRanks: l.Ranks, listen: "127.0.0.1:0"}
	if !l.OneHost && l.Rank == 0 {
		ifname, _ := f.Getenv("NCCL_SOCKET_IFNAME")
		family, _ := f.Getenv("NCCL_SOCKET_FAMILY")
		i, err := sock.First(ifname, family)
		if err != nil {
			return out, err
		}
		out.listen = net.JoinHostPort(i.Host(), "0")
	}
	conn, err := openPMI(l.PMI)
	if err != nil {
		return out, Refuse("%v; write --root-address HOST:PORT", err)
	}
	out.share = func(word string) (string, error) {
		defer conn.Close()
		got, err := sharePMI(conn, l.Rank, word)
		if err != nil {
			return "", Refuse("%v; write --root-address HOST:PORT", err)
		}
		return got, nil
	}
	return out, nil
}

// meet lets rank 0 listen, and every rank learn the address.
func (p *Place) meet(nranks int, opt bootstrap.Options) (root *bootstrap.Root, err error) {
	if p.Rank == 0 {
		addr := p.id.Addr
		if p.share != nil {
			addr = p.listen
			if p.id.Secret, err = bootstrap.NewSecret(); err != nil {
				return nil, err
			}
		}
		if root, err = bootstrap.NewRoot(addr, nranks, p.id.Secret, opt); err != nil {
			if p.guess != "" {
				err = fmt.Errorf("%w; %s names only the host it was started on; assuming that is rank 0's",
					err, p.guess)
			}
			return root, Refuse("%v; write --root-address HOST:PORT with an address of rank 0's host and a "+
				"port that is free", err)
		}
		p.id = root.ID()
	}
	if p.share == nil {
		return root, nil
	}
	word := ""
	if p.Rank == 0 {
		word = p.id.String()
	}
	if word, err = p.share(word); err != nil {
		return root, err
	}
	p.id, err = bootstrap.ParseID(word)
	return root, err
}

// Loopback reports whether HOST:PORT is a loopback address, by which only processes of this host can connect.
func Loopback(root string) bool {
	h, _, err := net.SplitHostPort(root)
	ip := net.ParseIP(h)
	return err == nil && (h == "localhost" || ip != nil && ip.IsLoopback())
}

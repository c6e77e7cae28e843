package team

import (
	"fmt"
	"net"
	"strconv"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/sock"
)

// Place is which of how many processes this one is.
type Place struct {
	// Rank is -1 where this process was started alone; NRanks is then the number
	// of ranks that it shall have itself, 0 where nothing says it.
	Rank, NRanks int

	id    bootstrap.ID
	guess string // the launcher by whose host rank 0's was guessed
	// share gives all ranks rank 0's word, where the launcher can; rank 0 then
	// listens on listen.
	share  func(word string) (string, error)
	listen string
}

// Alone is the place of a process without others.
func Alone(nranks int) Place { return Place{Rank: -1, NRanks: nranks} }

// Finder is what a place is found by.
type Finder struct {
	Rank, NRanks int    // as options say them; a rank below 0: they do not
	Root         string // HOST:PORT, as an option says it
	Getenv       func(name string) (string, bool)
	// Secret is what the processes share; loopback says that all are of this host.
	Secret func(loopback bool) (Secret, error)
}

// Find takes what options say before the launcher's environment.
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

// launch is how this process was started.
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

// checkRoot checks HOST:PORT.
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

// byPMI is a place whose ranks learn of the root from the launcher.
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

// meet has rank 0 listen, and every rank know where.
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

// Loopback reports whether HOST:PORT is an address by which only this host's
// processes meet.
func Loopback(root string) bool {
	h, _, err := net.SplitHostPort(root)
	ip := net.ParseIP(h)
	return err == nil && (h == "localhost" || ip != nil && ip.IsLoopback())
}

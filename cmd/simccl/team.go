package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/real/bootstrap"
	"github.com/simccl/simccl/real/host"
	"github.com/simccl/simccl/real/ibv"
	"github.com/simccl/simccl/real/pmi"
	"github.com/simccl/simccl/real/sock"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/topo"
	"github.com/spf13/pflag"
)

// placeFlags say which of how many processes this is.
type placeFlags struct {
	rank, nranks int
	root, secret string
}

func (p *placeFlags) register(f *pflag.FlagSet) {
	f.IntVar(&p.rank, "rank", -1, "this process's `RANK`, where no launcher says it")
	f.IntVar(&p.nranks, "nranks", 0, "number of ranks; without --rank all are of this process")
	f.StringVar(&p.root, "root-address", "", "`HOST:PORT` where rank 0 listens")
	f.StringVar(&p.secret, "secret", "", "`WORD` that all ranks know and strangers do not (default made from the job's name; better SIMCCL_SECRET)")
}

// place is the answer: nranks 0 and rank -1 where nothing was said.
type place struct {
	rank, nranks int
	id           bootstrap.ID
	guess        string // whose host rank 0 is taken to be on
	// share tells all ranks rank 0's word, where the launcher can; rank 0 then
	// listens on listen.
	share  func(word string) (string, error)
	listen string
}

// find reads flags before the launcher's environment.
func (p *placeFlags) find(a *app) (place, error) {
	if p.rank < 0 && p.nranks > 0 {
		return place{rank: -1, nranks: p.nranks}, nil
	}
	l := config.Launch{Rank: p.rank, Ranks: p.nranks, Root: p.root}
	if id, ok := a.getenv("NCCL_COMM_ID"); l.Root == "" && ok {
		l.Root = id
	}
	l.Job = "flags " + l.Root
	if p.rank < 0 {
		var err error
		if l, err = config.FindLaunch(a.getenv); err != nil {
			return place{}, usage("%v", err)
		}
		if l.By == "" {
			return place{rank: -1}, nil
		}
		if p.root != "" {
			l.Root, l.Guess, l.PMI = p.root, false, 0
		}
	}
	switch {
	case l.Ranks < 1 || l.Rank >= l.Ranks:
		return place{}, usage("--rank %d --nranks %d: ranks go from 0 to one less than their number", l.Rank, l.Ranks)
	case l.PMI > 0:
		return byPMI(a, &l)
	case l.Root == "" && l.Ranks > 1:
		return place{}, usage("where does rank 0 listen? write --root-address HOST:PORT, or set NCCL_COMM_ID=HOST:PORT")
	case l.Root == "":
		l.Root = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(l.Root); err != nil {
		return place{}, usage("root %s: %v; write HOST:PORT", l.Root, err)
	}
	secret := p.secret
	if v, ok := a.getenv("SIMCCL_SECRET"); secret == "" && ok {
		secret = v
	}
	sum := sha256.Sum256([]byte("simccl bench\n" + l.Job + "\n" + secret))
	out := place{rank: l.Rank, nranks: l.Ranks, id: bootstrap.ID{Addr: l.Root}}
	if l.Guess {
		out.guess = l.By
	}
	copy(out.id.Secret[:], sum[:])
	return out, nil
}

// byPMI is a place whose ranks learn of the root from the launcher.
func byPMI(a *app, l *config.Launch) (place, error) {
	out := place{rank: l.Rank, nranks: l.Ranks, listen: "127.0.0.1:0"}
	if !l.OneHost && l.Rank == 0 {
		ifname, _ := a.getenv("NCCL_SOCKET_IFNAME")
		family, _ := a.getenv("NCCL_SOCKET_FAMILY")
		i, err := sock.First(ifname, family)
		if err != nil {
			return out, err
		}
		out.listen = net.JoinHostPort(i.Host(), "0")
	}
	conn, err := pmi.Open(l.PMI)
	if err != nil {
		return out, usage("%v; write --root-address HOST:PORT", err)
	}
	out.share = func(word string) (string, error) {
		defer conn.Close()
		got, err := pmi.Share(conn, l.Rank, word)
		if err != nil {
			return "", usage("%v; write --root-address HOST:PORT", err)
		}
		return got, nil
	}
	return out, nil
}

// team is the processes of a run: this one alone, or joined by a bootstrap.
type team struct {
	rank, nranks int
	ctx          context.Context
	stop         context.CancelCauseFunc
	root         *bootstrap.Root
	boot         *bootstrap.Comm // nil: all ranks are here
	silence      time.Duration
}

// assemble waits for all ranks. Where one dies, the others' context ends with
// its name.
func assemble(ctx context.Context, p place, nranks int) (*team, error) {
	t := &team{nranks: nranks, silence: 5 * time.Second}
	t.ctx, t.stop = context.WithCancelCause(ctx)
	if p.rank < 0 {
		return t, nil
	}
	t.rank = p.rank
	opt := bootstrap.Options{Silence: t.silence}
	if err := t.meet(&p, opt); err != nil {
		if t.root != nil {
			t.root.Close()
		}
		return nil, err
	}
	var err error
	if t.boot, err = bootstrap.Join(t.ctx, p.id, p.rank, nranks, opt); err != nil {
		if t.root != nil {
			t.root.Close()
		}
		return nil, deadline(err)
	}
	go func() {
		select {
		case <-t.boot.Failed():
			t.stop(t.boot.Err())
		case <-t.ctx.Done():
		}
	}()
	return t, nil
}

// meet has rank 0 listen, and every rank know where.
func (t *team) meet(p *place, opt bootstrap.Options) (err error) {
	if p.rank == 0 {
		addr := p.id.Addr
		if p.share != nil {
			addr = p.listen
			if p.id.Secret, err = bootstrap.NewSecret(); err != nil {
				return err
			}
		}
		if t.root, err = bootstrap.NewRoot(addr, t.nranks, p.id.Secret, opt); err != nil {
			if p.guess != "" {
				err = fmt.Errorf("%w; of %s one knows only the host that it was started on, taken for rank 0's", err, p.guess)
			}
			return usage("%v; write --root-address HOST:PORT with an address of rank 0's host and a port that is free", err)
		}
		p.id = t.root.ID()
	}
	if p.share == nil {
		return nil
	}
	word := ""
	if p.rank == 0 {
		word = p.id.String()
	}
	if word, err = p.share(word); err != nil {
		return err
	}
	p.id, err = bootstrap.ParseID(word)
	return err
}

// deadline gives what ran out of time its exit status.
func deadline(err error) error {
	var late *bootstrap.TimeoutError
	var dead *bootstrap.DeadError
	var gone *bootstrap.AbortError
	if errors.As(err, &late) {
		return &statusError{code: exitTimeout, err: err}
	}
	if errors.As(err, &dead) || errors.As(err, &gone) || errors.Is(err, bootstrap.ErrRefused) {
		return &statusError{code: exitNCCL, err: err}
	}
	return err
}

// here lists the local ranks; nil means all.
func (t *team) here() []int32 {
	if t.boot == nil {
		return nil
	}
	return []int32{int32(t.rank)}
}

func (t *team) barrier() error {
	if t.boot == nil {
		return nil
	}
	return t.boot.Barrier()
}

// agree fails where ranks were started differently.
func (t *team) agree(what []byte) error {
	if t.boot == nil {
		return nil
	}
	sum := sha256.Sum256(what)
	all, err := t.boot.AllGather(sum[:])
	if err != nil {
		return err
	}
	for r, b := range all {
		if !bytes.Equal(b, sum[:]) {
			return usage("%v: rank %d's machine, sizes or NCCL_* differ from rank %d's", errDisagree, r, t.rank)
		}
	}
	return nil
}

// give passes an error on, with the name of whoever is to blame for it: a
// connection that breaks is seen before the root knows that a process died.
func (t *team) give(err error) error {
	if err == nil || t.boot == nil {
		return err
	}
	var dead *bootstrap.DeadError
	var s *statusError
	if errors.As(err, &s) {
		t.boot.Abort(err.Error())
		return err
	}
	if !errors.As(err, &dead) {
		select {
		case <-t.boot.Failed():
			if e := t.boot.Err(); e != nil && !strings.Contains(err.Error(), e.Error()) {
				err = fmt.Errorf("%w (%w)", e, err)
			}
		case <-time.After(t.silence + time.Second):
			t.boot.Abort(err.Error())
		}
	}
	return deadline(err)
}

// leave says farewell; rank 0 stays until all have.
func (t *team) leave() {
	if t.boot != nil {
		_ = t.boot.Close()
	}
	if t.root != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*t.silence)
		defer cancel()
		_ = t.root.Wait(ctx)
		_ = t.root.Close()
	}
	t.stop(nil)
}

// fileName puts the rank before the ending where there are several processes.
func (t *team) fileName(name string) string {
	if t.boot == nil || t.nranks == 1 {
		return name
	}
	dir, base := filepath.Split(name)
	stem, ending, _ := strings.Cut(base, ".")
	return fmt.Sprintf("%s%s.rank%d.%s", dir, stem, t.rank, ending)
}

// openWire makes the transport of a backend, nil for memory.
func openWire(backend string, m *machine, t *team) (*host.Wire, error) {
	var n transport.Net
	var err error
	w := &host.Wire{}
	switch backend {
	case "host":
		if t.boot != nil && t.nranks > 1 {
			return nil, usage("--backend host: ranks of several processes share no memory; write sockets or verbs")
		}
		return nil, nil
	case "sockets":
		set := m.cfg.Socket
		if set.IfName == "" && t.onOneHost() {
			set.IfName = "lo"
		}
		n, err = sock.NewNet(set)
	case "verbs":
		set := m.cfg.IB
		set.Host = t.address()
		n, err = ibv.NewNet(set)
		w.Memory = ibv.HostMemory
	}
	if err != nil {
		return nil, err
	}
	w.Net = n
	if w.Device, err = m.assignNICs(n); err != nil {
		return nil, err
	}
	if t.boot != nil {
		w.Exchange = func(int32) host.Exchange { return t.boot }
	} else {
		w.Exchange = host.NewInProcess().Of
	}
	return w, nil
}

// assignNICs says which of a transport's devices the ends of connections go
// by: the machine's nets, by name where the transport has them. Where it is
// another machine's topology, each host begins with another device, so that
// hosts which share this machine do not share a port. Between ranks of one
// host it is a rank's place that decides.
func (m *machine) assignNICs(n transport.Net) (func(rank, nic int32) int, error) {
	devs, err := n.Devices()
	if err != nil {
		return nil, err
	}
	var nics []host.NIC
	first := make([]int, len(m.cluster.Classes)) // NIC of each class
	for i, c := range m.cluster.Classes {
		first[i] = len(nics)
		s := c.Host.Systems[0]
		for _, id := range s.Of(topo.NET) {
			ports := s.Nodes[id].Net.Fused
			if ports == nil {
				ports = []string{s.Nodes[id].Net.Name}
			}
			nics = append(nics, host.NIC{Ports: ports})
		}
	}
	assigned, ours, err := host.Assign(n, nics)
	if err != nil {
		return nil, err
	}
	return func(rank, nic int32) int {
		at := m.cluster.Locate(int(rank))
		if nic < 0 {
			return at.Local % len(devs)
		}
		dev := assigned[first[m.cluster.ClassOf(at.Host)]+int(nic)]
		if !ours {
			dev = (dev + at.Host) % len(devs)
		}
		return dev
	}, nil
}

func (t *team) onOneHost() bool { return t.boot == nil || loopbackOnly(t.boot.Addr()) }

// address is by which the other ranks reach this one.
func (t *team) address() string {
	if t.boot == nil {
		return ""
	}
	h, _, _ := net.SplitHostPort(t.boot.Addr())
	return h
}

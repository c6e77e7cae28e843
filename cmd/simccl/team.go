package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/real/bootstrap"
	"github.com/simccl/simccl/real/host"
	"github.com/simccl/simccl/real/ibv"
	"github.com/simccl/simccl/real/pmi"
	"github.com/simccl/simccl/real/sock"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
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
	if a.last != nil {
		a.last.peers.Store(l.Ranks > 1)
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
	if err := rootAddress(l.Root, l.Ranks); err != nil {
		return place{}, err
	}
	out := place{rank: l.Rank, nranks: l.Ranks, id: bootstrap.ID{Addr: l.Root}}
	if l.Guess {
		out.guess = l.By
	}
	if l.Ranks == 1 {
		var err error
		out.id.Secret, err = bootstrap.NewSecret()
		return out, err
	}
	secret, err := p.secret.read(a, l.OneHost || loopbackOnly(l.Root))
	if err != nil {
		return place{}, err
	}
	out.id.Secret = secret.key("bench\n" + l.Job)
	return out, nil
}

// rootAddress checks HOST:PORT.
func rootAddress(root string, ranks int) error {
	_, port, err := net.SplitHostPort(root)
	if err != nil {
		return usage("root %s: %v; write HOST:PORT", root, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && ranks > 1 {
		return usage("root %s: port %s: ports go from 1 to 65535", root, port)
	}
	return nil
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
	command      context.Context // of the whole command: it ends with a signal
	unwatch      func() bool
}

// assemble waits for all ranks. Where one dies, the others' context ends with
// its name.
func assemble(ctx context.Context, p place, nranks int) (*team, error) {
	t := &team{nranks: nranks, silence: 5 * time.Second, command: ctx, unwatch: func() bool { return true }}
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
		t.dismiss()
		return nil, t.own(deadline(secretHint(err)))
	}
	// The others learn of a signal at once, whatever this rank is doing.
	t.unwatch = context.AfterFunc(ctx, func() { t.boot.Abort(context.Cause(ctx)) })
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
	var mismatch *bootstrap.MismatchError
	switch {
	case errors.As(err, &mismatch):
		return &statusError{code: exitUsage, err: err}
	case blamesOther(err) || errors.Is(err, bootstrap.ErrRefused) || errors.Is(err, bootstrap.ErrNoRank):
		return &statusError{code: exitNCCL, err: err}
	case errors.As(err, &late):
		return &statusError{code: exitTimeout, err: err}
	}
	return err
}

// blamesOther tells whether an error says what another rank did.
func blamesOther(err error) bool {
	var dead *bootstrap.DeadError
	var gave *bootstrap.AbortError
	var sig *bootstrap.InterruptError
	var left *bootstrap.LeftError
	return errors.As(err, &dead) || errors.As(err, &gave) || errors.As(err, &sig) || errors.As(err, &left)
}

// own puts a signal that ended this process before what came of it.
func (t *team) own(err error) error {
	if err == nil || t.command.Err() == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", context.Cause(t.command), context.Canceled)
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
	if t.command.Err() != nil { // the others have been told
		return t.own(err)
	}
	var s *statusError
	var sig *bootstrap.InterruptError
	switch {
	case errors.As(err, &sig): // what this rank was doing is of no interest
		err = sig
	case errors.As(err, &s):
		t.boot.Abort(err)
		return err
	}
	if !blamesOther(err) {
		select {
		case <-t.boot.Failed():
			err = blame(t.boot.Err(), err)
		case <-t.command.Done():
			return t.own(err)
		case <-time.After(t.silence + time.Second):
			t.boot.Abort(err)
		}
	}
	return deadline(err)
}

// blame puts the verdict before what this rank saw of it; of an interrupted rank
// that is noise.
func blame(verdict, err error) error {
	var sig *bootstrap.InterruptError
	switch {
	case verdict == nil || strings.Contains(err.Error(), verdict.Error()):
		return err
	case errors.As(verdict, &sig):
		return verdict
	}
	return fmt.Errorf("%w (%w)", verdict, err)
}

// leave says farewell; rank 0 stays until all have.
func (t *team) leave() {
	t.unwatch()
	switch {
	case t.boot == nil:
	case t.command.Err() != nil:
		t.boot.Abort(context.Cause(t.command)) // before a farewell could overtake it
	default:
		_ = t.boot.Close()
	}
	t.dismiss()
	t.stop(nil)
}

// dismissTime is how long the root of an interrupted process stays to pass on
// why it ends.
const dismissTime = 400 * time.Millisecond

// dismiss ends the root once all ranks have left or heard the verdict.
func (t *team) dismiss() {
	if t.root == nil {
		return
	}
	limit := 2 * t.silence
	if t.command.Err() != nil {
		limit = dismissTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = t.root.Wait(ctx)
	_ = t.root.Close()
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
func openWire(backend string, m *scenario.Site, t *team) (*host.Wire, error) {
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
		set := m.Config.Socket
		if set.IfName == "" && t.onOneHost() {
			set.IfName = "lo"
		}
		n, err = sock.NewNet(set)
	case "verbs":
		set := m.Config.IB
		set.Host = t.address()
		n, err = ibv.NewNet(set)
		w.Memory = ibv.HostMemory
	}
	if err != nil {
		return nil, err
	}
	w.Net = n
	if w.Device, err = assignNICs(m, n); err != nil {
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
func assignNICs(m *scenario.Site, n transport.Net) (func(rank, nic int32) int, error) {
	devs, err := n.Devices()
	if err != nil {
		return nil, err
	}
	var nics []host.NIC
	first := make([]int, len(m.Cluster.Classes)) // NIC of each class
	for i, c := range m.Cluster.Classes {
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
		at := m.Cluster.Locate(int(rank))
		if nic < 0 {
			return at.Local % len(devs)
		}
		dev := assigned[first[m.Cluster.ClassOf(at.Host)]+int(nic)]
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

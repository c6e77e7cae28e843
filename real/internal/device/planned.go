package device

import (
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/cuda"
)

// loading identifies the plan whose connections are set up.
type loading struct {
	plan  *plan.Plan
	watch bool
}

// load sets up the connections of a plan, after removing the previous ones. All processes must call it with
// equal arguments. With watch every slice records its times.
func (s *Session) load(p *plan.Plan, watch bool) error {
	if s.loaded == (loading{p, watch}) {
		return nil
	}
	if p == nil {
		return &exec.UnsupportedError{Feature: "the plan's schedule on GPUs", Needs: "a plan", Found: "none"}
	}
	if p.Comm.NRanks != s.cfg.Ranks {
		return fmt.Errorf("a plan of %d ranks on %d GPUs", p.Comm.NRanks, s.cfg.Ranks)
	}
	s.loaded = loading{}
	if err := s.each((*rank).unload); err != nil {
		return err
	}
	c, err := cuda.NewCompiler(p, s.cfg.Warps)
	if err != nil {
		return err
	}
	if err := s.lacks(func(r *rank) error {
		t, err := c.Table(r.id)
		if err == nil {
			r.planned, err = cuda.NewPlanned(r.kernels, t, s.stop, s.several())
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.lacks((*rank).checkReach); err != nil {
		return err
	}
	if err := s.connect(watch); err != nil {
		return err
	}
	s.loaded = loading{p, watch}
	return nil
}

// checkReach returns an error if the plan needs memory that the GPU cannot access.
func (r *rank) checkReach() error {
	for peer := range r.s.cfg.Ranks {
		if arena, _ := r.planned.Needs(peer); arena && r.apart[peer] != nil {
			return r.apart[peer]
		}
	}
	return nil
}

// connect maps, on each rank, the memory of the ranks to which the plan connects it.
func (s *Session) connect(watch bool) error {
	arenas := make([][]cuda.Ptr, len(s.ranks))
	for i := range arenas {
		arenas[i] = make([]cuda.Ptr, s.cfg.Ranks)
	}
	wanted := func(r *rank, peer int) bool {
		arena, _ := r.planned.Needs(peer)
		return arena || peer == r.id
	}
	if err := s.exchange(func(r *rank) []cuda.Ptr { return []cuda.Ptr{r.planned.Arena()} }, wanted,
		func(r *rank, peer int, p []cuda.Ptr) { arenas[r.local][peer] = p[0] },
		func(r *rank) *[]cuda.Ptr { return &r.borrowed }); err != nil {
		return err
	}
	hosts, err := s.shareHosts()
	if err != nil {
		return err
	}
	return s.each(func(r *rank) error {
		if err := r.planned.SetPeers(arenas[r.local], hosts[r.local], watch); err != nil {
			return err
		}
		return r.together()
	})
}

// shareHosts returns, for every local rank, the addresses of all ranks' parts on the host, as its GPU sees
// them; 0 for those it does not need.
func (s *Session) shareHosts() ([][]cuda.Ptr, error) {
	hosts := make([][]cuda.Ptr, len(s.ranks))
	var mine []cuda.HostHandle
	for i, r := range s.ranks {
		hosts[i] = make([]cuda.Ptr, s.cfg.Ranks)
		for _, p := range s.ranks {
			hosts[i][p.id] = p.planned.HostArena()
		}
		h, err := r.planned.HostHandle()
		if err != nil {
			return nil, err
		}
		mine = append(mine, h)
	}
	if !s.several() {
		return hosts, nil
	}
	lists, err := gathered(s, mine)
	if err != nil {
		return nil, err
	}
	return hosts, s.lacks(func(r *rank) error {
		for peer, h := range slices.Concat(lists...) {
			if _, host := r.planned.Needs(peer); !host || !h.Some() || hosts[r.local][peer] != 0 {
				continue
			}
			m, err := r.dev.OpenHost(h)
			if err != nil {
				return fmt.Errorf("host memory of rank %d: %w", peer, err)
			}
			r.lent = append(r.lent, m)
			hosts[r.local][peer] = m.Device()
		}
		return nil
	})
}

// giveBack closes other processes' host memory.
func (r *rank) giveBack() error {
	var errs []error
	for _, m := range r.lent {
		errs = append(errs, m.Close())
	}
	r.lent = nil
	return errors.Join(errs...)
}

// unload removes the loaded plan: first every process unmaps the others' memory, then its owner frees it.
func (r *rank) unload() error {
	if err := r.wait(); err != nil {
		return err
	}
	for _, p := range r.borrowed {
		if err := r.dev.Unmap(p); err != nil {
			return err
		}
	}
	r.borrowed = nil
	if err := r.giveBack(); err != nil {
		return err
	}
	if err := r.together(); err != nil {
		return err
	}
	p := r.planned
	if p == nil { // none was loaded here, though possibly on other ranks
		return nil
	}
	r.planned = nil
	return p.Close()
}

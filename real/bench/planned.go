package bench

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/cuda"
)

// Planned as a shape: the plan's own schedule, run by kernels (Op.Plan).
const Planned = cuda.Shape(254)

// loading is the plan whose connections stand.
type loading struct {
	plan  *plan.Plan
	watch bool
}

// load makes the connections of a plan in the place of those that stood. All
// processes call it alike. With watch every slice leaves its times.
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
	if err := s.each(func(r *rank) error {
		t, err := c.Table(r.id)
		if err == nil {
			r.planned, err = cuda.NewPlanned(r.kernels, t, s.stop)
		}
		return err
	}); err != nil {
		return err
	}
	arenas, hosts := make([][]cuda.Ptr, len(s.ranks)), make([]cuda.Ptr, s.cfg.Ranks)
	for i, r := range s.ranks {
		arenas[i], hosts[r.id] = make([]cuda.Ptr, s.cfg.Ranks), r.planned.HostArena()
	}
	if err := s.trade(func(r *rank) []cuda.Ptr { return []cuda.Ptr{r.planned.Arena()} },
		func(r *rank, peer int, p []cuda.Ptr) { arenas[r.local][peer] = p[0] },
		func(r *rank) *[]cuda.Ptr { return &r.borrowed }); err != nil {
		return err
	}
	if err := s.each(func(r *rank) error {
		if s.apart != nil && r.planned.NeedsPeers() {
			return s.apart
		}
		if err := r.planned.SetPeers(arenas[r.local], hosts, watch); err != nil {
			return err
		}
		return r.together()
	}); err != nil {
		return err
	}
	s.loaded = loading{p, watch}
	return nil
}

// unload leaves the plan that stood: first everybody lets go of the others'
// memory, then its owner frees it.
func (r *rank) unload() error {
	if r.planned == nil {
		return nil
	}
	if err := r.wait(); err != nil {
		return err
	}
	for _, p := range r.borrowed {
		if err := r.dev.Unmap(p); err != nil {
			return err
		}
	}
	r.borrowed = nil
	if err := r.together(); err != nil {
		return err
	}
	p := r.planned
	r.planned = nil
	return p.Close()
}

package device

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/cuda"
)

// share exchanges all ranks' buffers, and the arenas of the free algorithms if requested: plain addresses in
// one process, CUDA IPC between processes.
func (s *Session) share() error {
	if s.cfg.Ranks > cuda.MaxRanks {
		return &exec.UnsupportedError{Feature: "algorithms over peer memory",
			Needs: fmt.Sprintf("1 to %d ranks of one NVLink island", cuda.MaxRanks),
			Found: fmt.Sprintf("%d ranks", s.cfg.Ranks)}
	}
	err := s.exchange(func(r *rank) []cuda.Ptr { return []cuda.Ptr{r.send, r.recv} }, (*rank).reaches,
		func(r *rank, peer int, p []cuda.Ptr) { r.sends[peer], r.recvs[peer] = p[0], p[1] },
		func(r *rank) *[]cuda.Ptr { return &r.opened })
	if err != nil || !s.cfg.Free || s.apart != nil {
		return err
	}
	if err := s.each(func(r *rank) (err error) {
		r.free, err = cuda.NewFree(r.kernels, r.id, s.cfg.Ranks, s.stop)
		return err
	}); err != nil {
		return err
	}
	arenas := make([][]cuda.Ptr, len(s.ranks))
	for i := range arenas {
		arenas[i] = make([]cuda.Ptr, s.cfg.Ranks)
	}
	if err := s.exchange(func(r *rank) []cuda.Ptr { return []cuda.Ptr{r.free.Arena()} }, (*rank).reaches,
		func(r *rank, peer int, p []cuda.Ptr) { arenas[r.local][peer] = p[0] },
		func(r *rank) *[]cuda.Ptr { return &r.opened }); err != nil {
		return err
	}
	return s.each(func(r *rank) error {
		r.free.SetPeers(arenas[r.local])
		return nil
	})
}

// exchange passes to every local rank those addresses of every rank that it wants, as mapped there; mappings
// of other processes are added to opened.
func (s *Session) exchange(give func(*rank) []cuda.Ptr, want func(r *rank, peer int) bool,
	take func(r *rank, peer int, p []cuda.Ptr), opened func(*rank) *[]cuda.Ptr) error {
	mine := make([][]cuda.Ptr, len(s.ranks))
	for i, r := range s.ranks {
		mine[i] = give(r)
	}
	var lists [][]byte
	if s.several() {
		handles := make([][]byte, len(s.ranks))
		if err := s.each(func(r *rank) error {
			for _, p := range mine[r.local] {
				h, err := r.dev.Export(p)
				if err != nil {
					return err
				}
				handles[r.local] = append(handles[r.local], h[:]...)
			}
			return nil
		}); err != nil {
			return err
		}
		var err error
		if lists, err = s.cfg.Boot.AllGather(joined(handles)); err != nil {
			return err
		}
	}
	return s.each(func(r *rank) error {
		for i, p := range mine {
			if peer := s.cfg.First + i; want(r, peer) {
				take(r, peer, p)
			}
		}
		return r.openAll(joined(lists), len(mine[0]), want, take, opened(r))
	})
}

func joined(parts [][]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// openAll maps the memory of the wanted ranks of other processes, each handles per rank.
func (r *rank) openAll(list []byte, each int, want func(r *rank, peer int) bool, take func(r *rank, peer int,
	p []cuda.Ptr), opened *[]cuda.Ptr) error {
	var h cuda.IPCHandle
	for peer := 0; len(list) >= each*len(h); peer, list = peer+1, list[each*len(h):] {
		if i := peer - r.s.cfg.First; i >= 0 && i < len(r.s.ranks) || !want(r, peer) {
			continue
		}
		ptrs := make([]cuda.Ptr, each)
		for i := range ptrs {
			copy(h[:], list[i*len(h):])
			var err error
			if ptrs[i], err = r.dev.Import(h); err != nil {
				return fmt.Errorf("memory of rank %d: %w", peer, err)
			}
			*opened = append(*opened, ptrs[i])
		}
		take(r, peer, ptrs)
	}
	return nil
}

package device

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/simccl/simccl/exec"
)

// several reports whether the communicator spans processes.
func (s *Session) several() bool { return s.cfg.Boot != nil && s.cfg.Boot.Size() > 1 }

// gathered returns the values of all processes, in the order of processes.
func gathered[T any](s *Session, mine T) ([]T, error) {
	if !s.several() {
		return []T{mine}, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	lists, err := s.cfg.Boot.AllGather(text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(lists))
	for i, l := range lists {
		if err := json.Unmarshal(l, &all[i]); err != nil {
			return nil, fmt.Errorf("process %d: %w", i, err)
		}
	}
	return all, nil
}

// agree returns the same *exec.UnsupportedError in all processes, and on all ranks, if any of them lacks
// something.
func (s *Session) agree(lacking []*exec.UnsupportedError) error {
	var first *exec.UnsupportedError
	for _, e := range lacking {
		if first == nil {
			first = e
		}
	}
	all, err := gathered(s, first)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e != nil {
			return e
		}
	}
	return nil
}

// lacks runs f on every local rank. An *exec.UnsupportedError of a rank does not end the session: all ranks
// of all processes return it, and continue.
func (s *Session) lacks(f func(*rank) error) error {
	lacking := make([]*exec.UnsupportedError, len(s.ranks))
	if err := s.each(func(r *rank) error {
		err := f(r)
		if errors.As(err, &lacking[r.local]) {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	return s.agree(lacking)
}

// view holds, for each rank, why this rank's GPU cannot access its GPU's memory; nil: it can.
type view []*exec.UnsupportedError

// meetPeers enables peer access from every local GPU to all others, including other processes'. It is no
// failure if some cannot: a plan may use host memory between them.
func (s *Session) meetPeers() error {
	var ids []string
	for _, r := range s.ranks {
		ids = append(ids, r.dev.BusID)
	}
	lists, err := gathered(s, ids)
	if err != nil {
		return err
	}
	ids = nil
	for _, l := range lists {
		ids = append(ids, l...)
	}
	views := make([]view, len(s.ranks))
	if err := s.each(func(r *rank) (err error) {
		views[r.local], err = r.peerView(ids)
		return err
	}); err != nil {
		return err
	}
	all, err := gathered(s, views)
	if err != nil {
		return err
	}
	views = nil
	for _, v := range all {
		views = append(views, v...)
	}
	s.compare(views)
	return nil
}

// peerView queries the driver about access to the GPU of every rank.
func (r *rank) peerView(ids []string) (view, error) {
	v := make(view, len(ids))
	for peer, id := range ids {
		err := error(nil)
		switch i := peer - r.s.cfg.First; {
		case id == r.dev.BusID:
		case i >= 0 && i < len(r.s.ranks):
			err = r.dev.EnablePeer(r.s.ranks[i].dev)
		default:
			err = r.dev.Reaches(id)
		}
		if err != nil && !errors.As(err, &v[peer]) {
			return nil, err
		}
	}
	return v, nil
}

// compare records for every local rank the ranks with which it must not share memory, because one of the two
// cannot access the other.
func (s *Session) compare(views []view) {
	for _, r := range s.ranks {
		r.apart = make([]error, len(views))
	}
	for a, v := range views {
		for b, e := range v {
			if e == nil {
				continue
			}
			err := fmt.Errorf("rank %d: %w", a, e)
			if s.apart == nil {
				s.apart = err
			}
			for _, pair := range [2][2]int{{a, b}, {b, a}} {
				if i := pair[0] - s.cfg.First; i >= 0 && i < len(s.ranks) && s.ranks[i].apart[pair[1]] ==
					nil {
					s.ranks[i].apart[pair[1]] = err
				}
			}
		}
	}
}

// reaches reports whether the rank's GPU and another's can access each other.
func (r *rank) reaches(peer int) bool { return r.apart[peer] == nil }

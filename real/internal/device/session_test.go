package device

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// session makes ranks without GPUs: threads that only run the given functions.
func session(n int) *Session {
	s := &Session{meet: newMeeting(n)}
	s.ctx, s.abort = context.WithCancelCause(context.Background())
	for i := range n {
		r := &rank{s: s, id: i, local: i, jobs: make(chan func(*rank) error, 1), done: make(chan error, 1)}
		s.ranks = append(s.ranks, r)
		go func() {
			for f := range r.jobs {
				r.done <- f(r)
			}
		}()
	}
	return s
}

func TestMeetingHoldsEveryRank(t *testing.T) {
	s := session(4)
	var here atomic.Int32
	err := s.each(func(r *rank) error {
		for round := range int32(50) {
			here.Add(1)
			if err := r.together(); err != nil {
				return err
			}
			if got := here.Load(); got < 4*(round+1) {
				return errors.New("passed before all were here")
			}
			if err := r.together(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A rank that fails ends the waits of the others, and a rank that is stuck in
// the driver does not keep the rest.
func TestAFailureEndsAllWaits(t *testing.T) {
	s := session(3)
	stuck := make(chan struct{})
	defer close(stuck)
	began := time.Now()
	err := s.each(func(r *rank) error {
		switch r.id {
		case 0:
			return errors.New("out of memory")
		case 1:
			return r.together()
		}
		<-stuck
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "rank 0: out of memory") {
		t.Errorf("got %v, want the first failure", err)
	}
	if d := time.Since(began); d > 20*grace {
		t.Errorf("took %v", d)
	}
	if !s.ranks[2].closed || s.ranks[1].closed {
		t.Error("the stuck rank alone is left behind")
	}
}

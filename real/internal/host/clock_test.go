package host

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"
)

// skewed is an exchange that answers for a rank 0 whose clock is late.
type skewed struct {
	late    time.Duration
	replies int
	slow    bool
}

func (s *skewed) Send(int, uint32, []byte) error { return nil }

func (s *skewed) Recv(int, uint32) ([]byte, error) {
	now := Clock(time.Now().Add(-s.late))
	if s.replies++; s.slow && s.replies < clockRounds {
		time.Sleep(60 * time.Millisecond)
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(now)), nil
}

// The offset is found within what is said to be its doubt, also where all round
// trips but one are slow.
func TestClocksAreCompared(t *testing.T) {
	for _, s := range []*skewed{{late: 3 * time.Second}, {late: -time.Millisecond},
		{late: time.Hour, slow: true}} {
		ahead, doubt, err := CompareClocks(s, 1, 2)
		if off := ahead - s.late.Nanoseconds(); err != nil || max(off, -off) > doubt+1 ||
			doubt > int64(20*time.Millisecond) {
			t.Errorf("ahead by %d ns of %v, doubt %d ns: %v", ahead, s.late, doubt, err)
		}
	}
}

func TestClocksOfAllRanks(t *testing.T) {
	x := NewInProcess()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for r := range 4 {
		wg.Go(func() {
			ahead, doubt, err := CompareClocks(x.Of(int32(r)), r, 4)
			if err == nil && max(ahead, -ahead) > doubt+1 {
				err = errors.New("one process has one clock")
			}
			errs[r] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

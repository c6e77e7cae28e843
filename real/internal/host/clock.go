package host

import (
	"encoding/binary"
	"fmt"
	"time"
)

// started relates this process's monotonic clock to the calendar, once.
var started = time.Now()

// Clock returns a time in nanoseconds since 1970 by this process's clock, which is unaffected by changes of
// the calendar.
func Clock(t time.Time) int64 { return started.UnixNano() + t.Sub(started).Nanoseconds() }

// Epoch returns the zero of the last run's trace, by this process's clock; 0 without a trace.
func (s *Session) Epoch() int64 {
	if s.x.log == nil {
		return 0
	}
	return Clock(s.x.log.began)
}

const (
	clockTag    = 1<<31 + 1 // no connection has this tag
	clockRounds = 32
)

// CompareClocks returns by how many nanoseconds this rank's clock is ahead of rank 0's, and the uncertainty:
// half of the fastest of several round trips, in whose middle rank 0's answer is assumed. All ranks must call
// it.
func CompareClocks(x Exchange, rank, ranks int) (ahead, doubt int64, err error) {
	if rank == 0 {
		for r := 1; r < ranks; r++ {
			for range clockRounds {
				if _, err := x.Recv(r, clockTag); err != nil {
					return 0, 0, err
				}
				if err := x.Send(r, clockTag, binary.LittleEndian.AppendUint64(nil,
					uint64(Clock(time.Now())))); err != nil {
					return 0, 0, err
				}
			}
		}
		return 0, 0, nil
	}
	best := int64(-1)
	for range clockRounds {
		posted := Clock(time.Now())
		if err := x.Send(0, clockTag, []byte{1}); err != nil {
			return 0, 0, err
		}
		b, err := x.Recv(0, clockTag)
		if err != nil {
			return 0, 0, err
		}
		came := Clock(time.Now())
		if len(b) != 8 {
			return 0, 0, fmt.Errorf("rank 0 sent its time in %d bytes, not 8", len(b))
		}
		if trip := came - posted; best < 0 || trip < best {
			best = trip
			ahead, doubt = posted+trip/2-int64(binary.LittleEndian.Uint64(b)), (trip+1)/2
		}
	}
	return ahead, doubt, nil
}

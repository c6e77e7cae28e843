//go:build !linux

package sweep

import "time"

// moment is a reading of a clock: this system has none of a thread.
type moment time.Time

func now() moment { return moment(time.Now()) }

// until returns the time that passed from m to the end.
func (m moment) until(end moment) time.Duration { return time.Time(end).Sub(time.Time(m)) }

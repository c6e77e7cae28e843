package port

// PFCWatchdog drops the frames of a class that was paused for too long, until the class has been unpaused
// for as long (SONiC's pfcwd, action drop).
type PFCWatchdog struct {
	since [8]int64 // when a pause, or where it dropped their end, began; -1: none
	drops uint16   // classes that are dropped
}

// NewPFCWatchdog watches a port whose classes are not paused.
func NewPFCWatchdog() *PFCWatchdog {
	return &PFCWatchdog{since: [8]int64{-1, -1, -1, -1, -1, -1, -1, -1}}
}

// Poll looks at a class at a time and reports whether the watchdog triggers: the class was paused for after,
// with frames that wait, and is dropped from now on. Once the pause has been over for restore it is dropped
// no more. Times are in ps.
func (d *PFCWatchdog) Poll(class int, paused, waits bool, now, after, restore int64) (triggered bool) {
	bit, x := uint16(1)<<class, &d.since[class]
	dropping := d.drops&bit != 0
	if paused == dropping {
		*x = -1
		return false
	}
	if *x < 0 {
		*x = now
	}
	switch {
	case dropping && now-*x >= restore:
		d.drops &^= bit
		*x = -1
	case !dropping && waits && now-*x >= after:
		d.drops |= bit
		*x = -1
		return true
	}
	return false
}

// Drops reports whether a class is dropped; without a dog none is.
func (d *PFCWatchdog) Drops(class uint8) bool { return d != nil && d.drops>>class&1 != 0 }

// Next is when it next has something to do, if nothing changes before; the most there is if never.
func (d *PFCWatchdog) Next(after, restore int64) int64 {
	t := int64(1<<63 - 1)
	for k, since := range d.since {
		if since < 0 {
			continue
		}
		if d.drops>>k&1 != 0 {
			t = min(t, since+restore)
		} else {
			t = min(t, since+after)
		}
	}
	return t
}

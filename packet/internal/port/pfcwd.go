package port

// PFCWatchdog watches a port.
type PFCWatchdog struct {
	since [8]int64 // when a pause, or where it dropped their end, began; -1: none
	drops uint16   // classes that are dropped
}

// NewPFCWatchdog is a dog that has seen nothing.
func NewPFCWatchdog() *PFCWatchdog {
	return &PFCWatchdog{since: [8]int64{-1, -1, -1, -1, -1, -1, -1, -1}}
}

// Look looks at a class; it reports whether from now on that is dropped, after so long a pause.
// Once that has been over for restore, it is no more.
func (d *PFCWatchdog) Look(class int, paused, waits bool, now, after, restore int64) (barks bool) {
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

// Drops says that a class is dropped; without a dog none is.
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

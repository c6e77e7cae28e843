package port

// PFCWatchdog drops the frames of a class that has been paused for too long, until the class has been
// unpaused for as long (SONiC's pfcwd, action drop).
type PFCWatchdog struct {
	since [8]int64 // start of a pause or, while dropping, of its absence; -1: none
	drops uint16   // bits: classes being dropped
}

// NewPFCWatchdog returns the watchdog of an unpaused port.
func NewPFCWatchdog() *PFCWatchdog {
	return &PFCWatchdog{since: [8]int64{-1, -1, -1, -1, -1, -1, -1, -1}}
}

// Poll checks a class at a time and reports whether the watchdog triggers: the class was paused for after
// with frames waiting, and is dropped from now on. Dropping ends once the class was unpaused for restore.
// Times are in ps.
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

// Drops reports whether frames of a class are dropped; a nil watchdog drops none.
func (d *PFCWatchdog) Drops(class uint8) bool { return d != nil && d.drops>>class&1 != 0 }

// Next returns when Poll would act next if no state changes.
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

// Package watchdog says when a switch drops what waits at a port that is paused for too long.
//
// In: which classes of a port are paused, at what times. Out: which it drops. It must not know
// frames, queues or links.
package watchdog

import "github.com/simccl/simccl/sim/wire/packet/spec"

// Dog is what is known of the classes of a port.
type Dog struct {
	since [8]int64 // when a pause, or where it dropped their end, began; -1: none
	drops uint16   // classes that are dropped
}

// New is a Dog of a port that was not paused.
func New() *Dog { return &Dog{since: [8]int64{-1, -1, -1, -1, -1, -1, -1, -1}} }

// Look looks at a class of a port at a time in ps, whether it is paused and whether something
// waits; bark says that what waits is to be dropped.
func (d *Dog) Look(c *spec.Watchdog, class int, paused, waits bool, now int64) (bark bool) {
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
	case dropping && now-*x >= int64(c.Restore):
		d.drops &^= bit
		*x = -1
	case !dropping && waits && now-*x >= int64(c.After):
		d.drops |= bit
		*x = -1
		return true
	}
	return false
}

// Drops says that what comes in a class is dropped.
func (d *Dog) Drops(class uint8) bool { return d.drops>>class&1 != 0 }

// Alarm is when there is next something to do for the first so many classes but 0; never
// without.
func (d *Dog) Alarm(c *spec.Watchdog, classes int, never int64) int64 {
	t := never
	for k := 1; k < classes; k++ {
		if since := d.since[k]; since >= 0 {
			after := c.After
			if d.drops>>k&1 != 0 {
				after = c.Restore
			}
			t = min(t, since+int64(after))
		}
	}
	return t
}

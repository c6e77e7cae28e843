package verbs

import "slices"

// MR is a memory registration: its pages, its keys, and its number of users.
type MR struct {
	handle     uintptr
	Addr       uintptr // of the first page
	Len        int     // whole pages
	Lkey, Rkey uint32
	refs       int
}

// mrCache holds a device's registrations, sorted by address. Memory is registered by whole pages; memory
// within an earlier registration shares that one (net_ib.cc:1938, ncclIbRegMrDmaBufInternal2).
type mrCache struct {
	page     uintptr // bytes, a power of 2
	slots    []*MR
	register func(addr uintptr, size int) (*MR, error)
	release  func(*MR) error
}

// take registers memory, or adds a user to a registration that contains it.
func (c *mrCache) take(addr uintptr, size int) (*MR, error) {
	from := addr &^ (c.page - 1)
	to := (addr + uintptr(size) + c.page - 1) &^ (c.page - 1)
	at := 0
	for ; at < len(c.slots) && c.slots[at].Addr <= from; at++ {
		if m := c.slots[at]; to <= m.Addr+uintptr(m.Len) {
			m.refs++
			return m, nil
		}
	}
	m, err := c.register(from, int(to-from))
	if err != nil {
		return nil, err
	}
	m.refs = 1
	c.slots = slices.Insert(c.slots, at, m)
	return m, nil
}

// drop removes one user; the last one ends the registration.
func (c *mrCache) drop(m *MR) error {
	if m.refs--; m.refs > 0 {
		return nil
	}
	if i := slices.Index(c.slots, m); i >= 0 {
		c.slots = slices.Delete(c.slots, i, i+1)
	}
	return c.release(m)
}

// clear ends all registrations.
func (c *mrCache) clear() (first error) {
	for _, m := range c.slots {
		if err := c.release(m); first == nil {
			first = err
		}
	}
	c.slots = nil
	return first
}

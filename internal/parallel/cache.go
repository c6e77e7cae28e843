package parallel

import "sync"

// Cache keeps values by key and computes each once, also with concurrent callers. The zero Cache is empty.
type Cache[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]*entry[V]
}

type entry[V any] struct {
	mu   sync.Mutex
	made bool
	v    V
}

// Get returns the value of a key, which build makes if there is none yet. Others that
// ask for the key wait meanwhile. An error is not kept.
func (c *Cache[K, V]) Get(key K, build func() (V, error)) (V, error) {
	c.mu.Lock()
	if c.all == nil {
		c.all = map[K]*entry[V]{}
	}
	e := c.all[key]
	if e == nil {
		e = new(entry[V])
		c.all[key] = e
	}
	c.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.made {
		v, err := build()
		if err != nil {
			return v, err
		}
		e.v, e.made = v, true
	}
	return e.v, nil
}

// Package crew runs the phases of windows on several workers in parallel.
//
// In: what a worker does, and orders for all workers. It must not know nodes.
package crew

import "sync"

// Order is what each worker does with its nodes in the window that ends at a time, in ps.
type Order struct {
	Phase
	End int64
}

// Phase is a part of a window.
type Phase uint8

// Phases of a window.
const (
	Take  Phase = iota // what arrives
	Act                // on it
	Later              // nodes whose window is later take what arrives and act on it
)

// Crew is workers; the first of them is who gives the orders.
type Crew struct {
	do     func(worker int, order Order)
	orders []chan Order
	busy   sync.WaitGroup
	ended  sync.WaitGroup
}

// Hire starts n workers but the first.
func Hire(n int, do func(worker int, order Order)) *Crew {
	c := &Crew{do: do, orders: make([]chan Order, n)}
	for i := 1; i < n; i++ {
		c.orders[i] = make(chan Order, 1)
		c.ended.Add(1)
		go func() {
			defer c.ended.Done()
			for o := range c.orders[i] {
				do(i, o)
				c.busy.Done()
			}
		}()
	}
	return c
}

// All lets every worker follow an order, and waits for them.
func (c *Crew) All(o Order) {
	c.busy.Add(len(c.orders) - 1)
	for i := 1; i < len(c.orders); i++ {
		c.orders[i] <- o
	}
	c.do(0, o)
	c.busy.Wait()
}

// Dismiss ends the workers.
func (c *Crew) Dismiss() {
	for i := 1; i < len(c.orders); i++ {
		close(c.orders[i])
	}
	c.ended.Wait()
}

// Divide gives n workers equally many of some, and of others about equally much, by their sizes: from
// which to which.
func Divide(n, some, others int, size func(i int) int) (a, b [][2]int) {
	all, at, seen := 0, 0, 0
	for i := range others {
		all += size(i)
	}
	for i := range n {
		from := at
		for ; at < others && (i == n-1 || seen < all*(i+1)/n); at++ {
			seen += size(at)
		}
		a, b = append(a, [2]int{some * i / n, some * (i + 1) / n}), append(b, [2]int{from, at})
	}
	return a, b
}

// Package order sorts things that depend on each other.
package order

// Sort orders n things so that each follows what it depends on, else by their numbers.
// deps yields what a thing depends on, numbers below n. ok is false where
// dependencies are a cycle: the list then has what is on none.
func Sort(n int, deps func(i int32, yield func(on int32))) (list []int32, ok bool) {
	left := make([]int32, n)
	after := make([][]int32, n)
	forward := true
	for i := range int32(n) {
		deps(i, func(on int32) {
			left[i]++
			after[on] = append(after[on], i)
			forward = forward && on < i
		})
	}
	list = make([]int32, 0, n)
	if forward {
		for i := range int32(n) {
			list = append(list, i)
		}
		return list, true
	}
	var ready heap
	for i := range int32(n) {
		if left[i] == 0 {
			ready.push(i)
		}
	}
	for len(ready) > 0 {
		i := ready.pop()
		list = append(list, i)
		for _, a := range after[i] {
			if left[a]--; left[a] == 0 {
				ready.push(a)
			}
		}
	}
	return list, len(list) == n
}

// heap is a queue of numbers, the least first.
type heap []int32

func (h *heap) push(v int32) {
	*h = append(*h, v)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up] <= q[i] {
			return
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
}

func (h *heap) pop() int32 {
	q := *h
	top := q[0]
	n := len(q) - 1
	q[0] = q[n]
	q = q[:n]
	*h = q
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return top
		}
		if l+1 < n && q[l+1] < q[l] {
			l++
		}
		if q[i] <= q[l] {
			return top
		}
		q[i], q[l] = q[l], q[i]
		i = l
	}
}

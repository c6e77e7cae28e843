package heap

// Order returns the numbers 0 to n-1 in topological order, and otherwise ascending. deps yields the numbers
// that i depends on. ok is false if dependencies form a cycle: list then contains what does not depend on
// one.
func Order(n int, deps func(i int32, yield func(on int32))) (list []int32, ok bool) {
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
	var ready Heap[number]
	for i := range int32(n) {
		if left[i] == 0 {
			ready.Push(number(i))
		}
	}
	for ready.Len() > 0 {
		i := int32(ready.Pop())
		list = append(list, i)
		for _, a := range after[i] {
			if left[a]--; left[a] == 0 {
				ready.Push(number(a))
			}
		}
	}
	return list, len(list) == n
}

// number is a thing, by which those that are ready are ordered.
type number int32

// Before orders the heap by number.
func (a number) Before(b number) bool { return a < b }

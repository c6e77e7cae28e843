package blame

// Cycle finds a cycle among nodes each of which waits for others; nil: there is none.
func Cycle(next [][]int32) []int32 {
	state := make([]uint8, len(next)) // 1: on the path, 2: done
	var path []int32
	var visit func(v int32) []int32
	visit = func(v int32) []int32 {
		state[v] = 1
		path = append(path, v)
		for _, t := range next[v] {
			if state[t] == 1 {
				for i, p := range path {
					if p == t {
						return path[i:]
					}
				}
			}
			if state[t] == 0 {
				if c := visit(t); c != nil {
					return c
				}
			}
		}
		state[v] = 2
		path = path[:len(path)-1]
		return nil
	}
	for v := range next {
		if state[v] == 0 {
			if c := visit(int32(v)); c != nil {
				return c
			}
		}
	}
	return nil
}

package maxmin

// Leads returns, for each of n resources, the one that slows tasks in its place: the resource itself, or one
// of an equal key that covers it, that is, whatever tasks run, has no more room for them. Only resources that
// are their own leads have to be shared. Of two that cover each other the first leads.
//
// Example: a GPU's traffic goes through one PCIe link to one NIC; the slower of both links leads the other.
func Leads[K comparable](n int, key func(i int) K, covers func(b, a int) bool) []int {
	leads, sets := make([]int, n), map[K][]int{}
next:
	for i := range n {
		leads[i] = i
		k := key(i)
		set := sets[k]
		if len(set) >= mostLeads {
			continue
		}
		for _, b := range set {
			if covers(b, i) {
				leads[i] = b
				continue next
			}
		}
		left := set[:0]
		for _, a := range set {
			if covers(i, a) {
				leads[a] = i
			} else {
				left = append(left, a)
			}
		}
		sets[k] = append(left, i)
	}
	for i := range leads {
		for leads[i] != leads[leads[i]] {
			leads[i] = leads[leads[i]]
		}
	}
	return leads
}

// mostLeads bounds the leads of one key that a resource is compared with: more are rare, and each of them
// being shared costs less than the comparisons.
const mostLeads = 256

// Package turn keeps the queue pairs of a host in the order in which they take turns.
//
// In: their numbers and senders. Out: the same without those that have ended. It must not know hosts or
// links.
package turn

import "github.com/simccl/simccl/sim/wire/packet/internal/pair"

// Strike drops the queue pairs that have ended from a list, beginning with the one at a place, and
// returns where the one is then that was found at another, or found if that is negative.
func Strike(list []int32, senders []pair.Sender, ended, found int) (left []int32, at int) {
	k := ended
	for i := ended; i < len(list); i++ {
		if s := &senders[list[i]]; s.Una < s.Frames {
			if i == found {
				found = k
			}
			list[k] = list[i]
			k++
		} else {
			s.Listed = false
		}
	}
	return list[:k], found
}

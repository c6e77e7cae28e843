package streams

// Feedback generates the numbers of an additive feedback generator with 31 words (Knuth, TAOCP 2, 3.2.2):
// each word is the sum of those 3 and 31 before it, and its upper 31 bits are the number. The words are
// seeded by a multiplicative congruential generator (Park and Miller, CACM 31, 1988); the first 310 numbers
// are discarded. It is the rand() of the GNU C library.
type Feedback struct {
	words [31]uint32
	next  int
}

// NewFeedback starts with a seed above 0; C programs that set none have 1.
func NewFeedback(seed uint32) *Feedback {
	f, x := &Feedback{next: 3}, uint64(seed)
	for i := range f.words {
		f.words[i] = uint32(x)
		x = x * 16807 % (1<<31 - 1)
	}
	for range 310 {
		f.Draw()
	}
	return f
}

// Draw is the next number, of 31 bits.
func (f *Feedback) Draw() uint32 {
	i := f.next
	k := i + 28
	if k >= len(f.words) {
		k -= len(f.words)
	}
	if f.next++; f.next == len(f.words) {
		f.next = 0
	}
	f.words[i] += f.words[k]
	return f.words[i] >> 1
}

package chrome

// Bounds of what is read. They are far beyond any trace that a viewer opens, and
// hold what a file of a few kilobytes can cost.
const (
	maxText  = 64 << 30 // bytes of text, decompressed
	maxBlank = 16 << 20 // white space in one place
	maxEvent = 32 << 20 // bytes of an event's text
	maxArgs  = 4096     // of an event
	maxName  = 64 << 10 // bytes of a name, a category, an id, a key
	maxHead  = 16 << 20 // bytes that otherData keeps
	maxWords = 1 << 20  // process and thread numbers that are words

	// maxRatio is how many bytes of text a compressed byte may hold beyond the
	// first freeText of them: traces hold 10 to 40, a file made to exhaust its
	// reader up to 1032.
	maxRatio = 200
	freeText = 64 << 20
)

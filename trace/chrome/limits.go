package chrome

// Limits of a file. They are far beyond any trace that a viewer opens, and bound the cost of a malicious file
// of a few kilobytes.
const (
	maxText  = 64 << 30 // bytes of text, decompressed
	maxBlank = 16 << 20 // white space in one place
	maxEvent = 32 << 20 // bytes of an event's text
	maxArgs  = 4096     // arguments of an event
	maxName  = 64 << 10 // bytes of a name, a category, an id, a key
	maxHead  = 16 << 20 // bytes of otherData in memory
	maxWords = 1 << 20  // process and thread numbers given as words

	// maxRatio is the largest number of bytes of text per compressed byte, beyond the first freeText bytes of
	// text: traces have 10 to 40, a file made to exhaust its reader up to 1032.
	maxRatio = 200
	freeText = 64 << 20
)

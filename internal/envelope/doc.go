// Package envelope takes text out of what it was packed, logged, pasted or saved
// in: compression, encodings, line ends, escapes of terminals, HTML, JSON lines of
// container engines, quotes, fences, numbers of grep -n and what launchers put in
// front of lines. Lines keep their number in the file.
//
// In: the bytes of a file. Out: lines, and what was taken away. Errors are a
// *PackedError and a *SizeError. Pure. What the text says is for others: where a
// prefix ends is decided by a predicate of the reader (Payload).
package envelope

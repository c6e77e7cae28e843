// Package envelope extracts text from the formats in which it was packed, logged, pasted or saved:
// compression, encodings, line ends, terminal escapes, HTML, JSON lines of container engines, quotes, fences,
// numbers of grep -n and prefixes of launchers. Lines keep their number in the file.
//
// In: the bytes of a file. Out: lines, and a list of what was removed. Errors are a *PackedError and a
// *SizeError. It is pure and does not interpret the text: a predicate of the reader decides where a prefix
// ends (Payload).
package envelope

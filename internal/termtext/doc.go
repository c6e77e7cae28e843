// Package termtext makes text of a foreign source safe to print: control
// characters of a file must not move a cursor, change a title, or turn the order
// of what a person reads. Input is any string, output is text of one line, or a
// writer that lets nothing else through. It knows nothing of what is printed.
//
// Escapes are those of JSON, \u009b, so that a JSON document stays the same
// document when it passes the writer.
package termtext

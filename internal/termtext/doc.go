// Package termtext makes text of foreign origin safe to print: control characters from a file must not move
// the cursor, change the title, or reverse the order of text. Input is any string; output is a line of text,
// or a writer that escapes everything else. It does not interpret the text.
//
// Escapes are those of JSON, \u009b, so that a JSON document is unchanged in meaning when it passes the
// writer.
package termtext

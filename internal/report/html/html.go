// Package html is what pages share: their style, their head, and text that HTML does
// not read as its own. Pages are one file: no scripts, nothing is loaded.
//
// Pages are written by hand and not with html/template: a program that links that
// package keeps every exported method of every type, three megabytes of this one
// (docs/DEPENDENCIES.md). All text goes through Text or Escape.
//
// What it must not know: what a page shows.
package html

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
)

//go:embed style.css
var style string

// Fact is a line of a page's summary.
type Fact struct{ Name, Value string }

// escapes are the characters that HTML reads as its own, within quotes or without.
var escapes = strings.NewReplacer("\x00", "\ufffd", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "<", "&lt;", ">", "&gt;")

// Escape is text within a drawing.
func Escape(s string) string { return escapes.Replace(s) }

// Text is text of a page.
func Text(s string) string { return strings.ReplaceAll(Escape(s), "+", "&#43;") }

// Head is the beginning of a page up to its facts; css is added to the style.
func Head(title, command, css string, facts []Fact) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
%s%s
</style>
</head>
<body>
<h1>%s</h1>
<p><code>%s</code></p>
<dl>`, Text(title), style, css, Text(title), Text(command))
	for _, f := range facts {
		fmt.Fprintf(&b, `<dt>%s</dt><dd>%s</dd>`, Text(f.Name), Text(f.Value))
	}
	b.WriteString("</dl>\n")
	return b.String()
}

// Step is the least of 1, 2 and 5 times a power of ten that is not below v: the
// distance of lines on an axis.
func Step(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p {
			return m * p
		}
	}
	return 10 * p
}

// Package site is the built web page, where the program was built with it (the tag
// webpage, which make build sets after make web).
//
// What it must not know: what the page shows, and how it is served.
package site

import "errors"

// ErrNotBuilt says that the program has no page.
var ErrNotBuilt = errors.New("this simccl was built without the web page; in a checkout, make web build " +
	"makes both (it needs npm), and then bin/simccl serve serves it")

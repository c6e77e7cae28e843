//go:build webpage

package site

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Page is the page that the program was built with.
func Page() (fs.FS, error) { return fs.Sub(dist, "dist") }

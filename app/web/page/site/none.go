//go:build !webpage

package site

import "io/fs"

// Page is the page that the program was built with.
func Page() (fs.FS, error) { return nil, ErrNotBuilt }

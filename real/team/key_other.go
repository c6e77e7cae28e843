//go:build !unix

package team

import "io/fs"

// ours is not known where files have no owner's number.
func ours(fs.FileInfo) bool { return true }

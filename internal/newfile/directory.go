package newfile

import (
	"os"
	"path/filepath"
)

// Possible reports whether the directory of a file to be written exists; true for an empty name.
func Possible(name string) bool {
	if name == "" {
		return true
	}
	at, err := os.Stat(filepath.Dir(name))
	return err == nil && at.IsDir()
}

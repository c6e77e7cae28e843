//go:build !linux

package newfile

import (
	"errors"
	"io/fs"
	"os"
)

// openUnnamed fails: only Linux has files without a name.
func openUnnamed(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, string) error { return errors.ErrUnsupported }

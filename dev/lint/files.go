package lint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"strings"
)

// maxTracked bounds a committed file in bytes. Recorded data below a testdata
// directory may be larger.
const maxTracked = 1 << 20

// Tracked lists the files that git tracks below dir, relative to it. The
// error says why there is no list: git is not installed, or dir is no checkout.
func Tracked(dir string) ([]string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(git, "-C", dir, "ls-files", "-z")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.FieldsFunc(string(list), func(r rune) bool { return r == 0 }), nil
}

// CheckFiles reports tracked files that are larger than maxTracked outside
// testdata, and programs built for any system, wherever they are. A name that
// the tree does not have, or has as something else than a plain file, is passed
// over: it is deleted, a link or a submodule.
func CheckFiles(fsys fs.FS, tracked []string) ([]Finding, error) {
	var found []Finding
	for _, name := range tracked {
		info, err := fs.Lstat(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		report := func(format string, args ...any) {
			found = append(found, Finding{Pos: token.Position{Filename: name, Line: 1, Column: 1},
				Rule: "file", Message: fmt.Sprintf(format, args...)})
		}
		format, err := programFormat(fsys, name)
		switch {
		case err != nil:
			return nil, err
		case format != "":
			report("a program is committed (%s); git rm --cached it and add its name to .gitignore", format)
		case info.Size() > maxTracked && !strings.Contains("/"+path.Dir(name)+"/", "/testdata/"):
			report("%d bytes are committed, more than %d; keep recorded data below testdata, and what is "+
				"built out of git", info.Size(), maxTracked)
		}
	}
	return found, nil
}

// programFormat names the executable format of a file by its first bytes: ELF,
// Mach-O or PE; "" where it is none of these. Java classes begin like Mach-O
// files of several processors, and are no source either.
func programFormat(fsys fs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", err
	}
	if len(head) < 4 {
		return "", nil
	}
	switch binary.BigEndian.Uint32(head) {
	case 0x7f454c46:
		return "ELF", nil
	case 0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe, 0xcafebabe, 0xcafebabf, 0xbebafeca, 0xbfbafeca:
		return "Mach-O", nil
	}
	// "MZ" alone may begin a text. A PE file has at 0x3c the place of "PE\0\0".
	if string(head[:2]) == "MZ" && len(head) >= 0x40 {
		at := int64(binary.LittleEndian.Uint32(head[0x3c:]))
		if at+4 <= int64(len(head)) && string(head[at:at+4]) == "PE\x00\x00" {
			return "PE", nil
		}
	}
	return "", nil
}

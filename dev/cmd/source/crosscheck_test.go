package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A package that compiles on Linux fails for the system on which it does not, with the
// place and the name.
func TestCheck(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	for _, x := range []struct{ name, file, text, want string }{
		{"no such call", "x_windows.go", "import \"syscall\"\n\nvar X = syscall.Statfs_t{}\n",
			"x_windows.go:5:17: undefined: syscall.Statfs_t"},
		{"no such call in a body", "x_windows.go", "func f() { undefined() }\n",
			"x_windows.go:3:12: undefined: undefined"},
		{"declared by no file of this system", "x_linux.go", "const X = 1\n", "use.go:3:9: undefined: X"},
		{"no assembly", "x.go", "const X = 1\n\nfunc f()\n", "x.go:5:1: missing function body of f"},
		{"of 32 bits", "x.go", "const X = 1\n\nvar y int = 1 << 40\n", "x.go:5:13: cannot use 1 << 40"},
		{"not imported", "x.go", "const X = 1\n\nvar _ = os.Args\n", "x.go:5:9: undefined: os"},
		{"fine", "x.go", "import \"os\"\n\nvar X = os.Args\n", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module example.com/x\n\ngo 1.26\n",
				x.file: "package x\n\n" + x.text, "use.go": "package x\n\nvar _ = X\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			arch := "amd64"
			if x.name == "of 32 bits" {
				arch = "386"
			}
			_, err := check(dir, "windows", arch, "./...")
			if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}

package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// platforms are the tags of wheels. The program needs no C library, so that any Linux will do: manylinux2014
// is the oldest that pip of today asks for (https://packaging.python.org, platform compatibility tags).
var platforms = map[target]string{
	{"linux", "amd64"}: "manylinux2014_x86_64", {"linux", "arm64"}: "manylinux2014_aarch64",
	{"darwin", "amd64"}: "macosx_12_0_x86_64", {"darwin", "arm64"}: "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64", {"windows", "arm64"}: "win_arm64",
}

// pythonVersion is a version as PEP 440 has it: 0.1.0-dev is 0.1.0.dev0, 0.2.0-rc1 is 0.2.0rc1.
func pythonVersion(v string) string {
	base, pre, _ := strings.Cut(v, "-")
	switch {
	case pre == "":
		return base
	case pre == "dev":
		return base + ".dev0"
	}
	return base + regexp.MustCompile(`[.-]`).ReplaceAllString(pre, "")
}

// wheel packs python/simccl with a program inside, as PEP 427 has it: files, then dist-info with a RECORD of
// their hashes.
func (r *release) wheel(t target, program string, data []byte) error {
	version := pythonVersion(r.version)
	files := []file{{"simccl/bin/" + program, 0o755, data}}
	for _, name := range []string{"__init__.py", "py.typed"} {
		text, err := os.ReadFile(filepath.Join("python", "simccl", name))
		if err != nil {
			return err
		}
		files = append(files, file{"simccl/" + name, 0o644, text})
	}
	readme, err := os.ReadFile("python/README.md")
	if err != nil {
		return err
	}
	info := "simccl-" + version + ".dist-info/"
	add := func(name, text string) { files = append(files, file{info + name, 0o644, []byte(text)}) }
	add("METADATA", fmt.Sprintf("Metadata-Version: 2.1\nName: simccl\nVersion: %s\n"+
		"Summary: What NVIDIA NCCL does on a machine, why, and how fast, without the machine\n"+
		"License: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: pandas\n"+
		"Requires-Dist: pandas; extra == \"pandas\"\nDescription-Content-Type: text/markdown\n\n%s", version,
		readme))
	add("WHEEL", "Wheel-Version: 1.0\nGenerator: simccl release\nRoot-Is-Purelib: false\nTag: py3-none-"+
		platforms[t]+"\n")
	for _, f := range r.extras {
		if f.name == "LICENSE" {
			add("LICENSE", string(f.data))
		}
	}
	var record strings.Builder
	for _, f := range files {
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, digest(f.data), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	add("RECORD", record.String())
	packed, err := zipped(files, "", r.date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("simccl-%s-py3-none-%s.whl", version, platforms[t])),
		packed,
		0o644)
}

// digest is a file's SHA-256 as RECORD has it.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Command hotprofile writes the profile by which make builds the engine, the packets
// and the trace writers (docs/adr/0025-a-profile-for-hot-packages.md):
//
//	hotprofile -tool bin/simccl -packets testdata/packets -out dev/cmd/hotprofile
//
// It runs simccl with --cpuprofile on a fixed list, adds the profiles up, and keeps
// calls from and to hot packages alone, without addresses, dates and file names of
// this machine.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"
)

func main() {
	tool := flag.String("tool", "bin/simccl", "the program, built with -trimpath")
	packets := flag.String("packets", "testdata/packets", "folder of the packet simulators' scenarios")
	out := flag.String("out", "dev/cmd/hotprofile", "folder of the profile; an older one there is removed")
	flag.Parse()
	if err := write(*tool, *packets, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write makes the profile and puts it in the place of the older one.
func write(tool, packets, out string) error {
	dir, err := os.MkdirTemp("", "simccl-hot")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all, err := record(tool, packets, dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := hot(all).Write(&b); err != nil {
		return err
	}
	older, err := filepath.Glob(filepath.Join(out, "*.pgo"))
	if err != nil {
		return err
	}
	for _, name := range older {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	path := filepath.Join(out, name(b.Bytes()))
	fmt.Printf("%s: %d bytes\n", path, b.Len())
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// name is the file name of a profile: the go command keeps what it compiled by the
// flags, so another profile needs another name.
func name(data []byte) string { return fmt.Sprintf("%.4x.pgo", sha256.Sum256(data)) }

// record runs the list in dir and adds the profiles up.
func record(tool, packets, dir string) (*profile.Profile, error) {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return nil, err
	}
	if err := scenarios(tool, packets, dir); err != nil {
		return nil, err
	}
	var parts []*profile.Profile
	for _, r := range runs {
		for range r.times {
			p, err := one(tool, dir, r.args)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
	}
	for _, p := range parts { // of one program: its build would be in each
		p.Mapping[0].BuildID, p.Mapping[0].File = "", ""
	}
	return profile.Merge(parts)
}

// one is the profile of a command.
func one(tool, dir, args string) (*profile.Profile, error) {
	file := filepath.Join(dir, "cpu.pb.gz")
	c := exec.Command(tool, append(strings.Fields(args), "--no-env", "--cpuprofile", file)...)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("simccl %s: %w\n%s", args, err, said)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return profile.Parse(f)
}

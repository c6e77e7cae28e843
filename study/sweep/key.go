package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
)

// Key identifies a point by its settings and the contents of its files: SHA-256 in hex. It does not depend on
// path, host or time, so equal keys have equal results.
type Key string

// keyer computes keys. It reads each file once.
type keyer struct {
	opt scenario.Options
	// about is the part common to all points: the version of results and the settings from outside the
	// specification.
	about string
	mu    sync.Mutex
	sums  map[string]string // by file name
}

// key hashes a point, with contents in place of names of files.
func (k *keyer) key(p *Point) (Key, error) {
	if p.Network != nil {
		return k.packets(p.Network)
	}
	s := p.Spec.Clone()
	s.Name, s.Outputs = "", scenario.Outputs{}
	names := []*string{&s.Network.Fabric, &s.Workload.Job}
	for i := range s.Machine.Nodes {
		names = append(names, &s.Machine.Nodes[i].Topo)
	}
	for _, n := range names {
		sum, err := k.sum(*n)
		if err != nil {
			return "", err
		}
		*n = sum
	}
	if c := s.Machine.Class; isFile(c) {
		sum, err := k.sum(c)
		if err != nil {
			return "", err
		}
		s.Machine.Class = sum
	}
	for name, v := range s.NCCL.Env { //lint:sorted each entry is replaced by itself
		if scenario.NamesFile(name) {
			sum, err := k.sum(v)
			if err != nil {
				return "", err
			}
			s.NCCL.Env[name] = sum
		}
	}
	return k.of(s.JSON()), nil
}

func (k *keyer) of(text []byte) Key {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s", k.about, text)
	return Key(hex.EncodeToString(h.Sum(nil)))
}

// isFile reports whether the name of a class is one of a file.
func isFile(class string) bool {
	for _, c := range class {
		if c == '/' || c == '.' {
			return true
		}
	}
	return false
}

// sum returns the hash of a file, or of the built-in machine of that name if there is no such file; "" for no
// name.
func (k *keyer) sum(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.sums[name]; ok {
		return s, nil
	}
	data, err := fs.ReadFile(k.opt.Files, name)
	if err != nil {
		m := builtin.Lookup(name)
		if m == nil {
			return "", err
		}
		data = m.XML()
	}
	return k.put(name, data), nil
}

// put keeps the hash of a file's contents.
func (k *keyer) put(name string, data []byte) string {
	sum := sha256.Sum256(data)
	k.sums[name] = "sha256:" + hex.EncodeToString(sum[:])
	return k.sums[name]
}

// files lists the files that were read, sorted by name.
func (k *keyer) files() []Source {
	var out []Source
	for name, sum := range k.sums { //lint:sorted sorted below
		out = append(out, Source{name, strings.TrimPrefix(sum, "sha256:")})
	}
	slices.SortFunc(out, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// shard returns the shard of n that a key belongs to.
func (k Key) shard(n int) int {
	var v uint64
	for i := 0; i < 16 && i < len(k); i++ {
		v = v<<4 | uint64(hexDigit(k[i]))
	}
	return int(v % uint64(n))
}

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

package golden

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"testing"
)

// Reference is one decision of an NCCL release: a topology, a number of nodes and
// settings in, the whole decision out.
type Reference struct {
	Version   string // the release, "2.27.7"; empty for 2.28.9
	Name      string // file name without .json.gz, "dgx-h100+nvls@PXN_DISABLE-1.n2"
	Machine   string // "dgx-h100"
	Topo      string // path of the topology file
	Kinds     []Kind // nodes of several kinds, in order; nil: all are of Topo
	File      string // path of the reference
	Nodes     int
	Multicast bool              // NVLink multicast was on
	Env       map[string]string // NCCL_* variables of the run
	Doc       map[string]json.RawMessage
}

// Kind is a number of nodes that have one topology file.
type Kind struct {
	Topo  string
	Count int
}

var referenceName = regexp.MustCompile(`^([^+@]+?)(\+nvls)?(@.+)?\.n(\d+)\.json\.gz$`)

// Own returns the references of the project's machines (testdata/topos), in
// the order of their names. Short tests under the race detector get those of
// four machines without settings, and every twelfth of the rest: it looks for races, which are the same on
// all machines, and would take a quarter of an hour to compare figures that the other run compares.
func Own(t testing.TB) []Reference {
	t.Helper()
	return thinned(t, own(t))
}

func own(t testing.TB) []Reference {
	t.Helper()
	return load(t, Root(t, "testdata", "topos", "golden"), []string{Root(t, "testdata", "topos")})
}

func thinned(t testing.TB, refs []Reference) []Reference {
	t.Helper()
	if !UnderRace || !testing.Short() {
		return refs
	}
	var few []Reference
	for i, r := range refs {
		switch r.Machine {
		case "dgx-h100", "dgx-a100", "h200x4-2", "h200x4-4": // tests load them by name
			if len(r.Env) == 0 {
				few = append(few, r)
			}
		default:
			if i%12 == 0 {
				few = append(few, r)
			}
		}
	}
	t.Logf("under the race detector: %d of %d references", len(few), len(refs))
	return few
}

// All returns every available reference: those of ../shared where that is
// present, which include the project's own, else Own's; thinned as Own's.
func All(t testing.TB) []Reference {
	t.Helper()
	shared := filepath.Join(Root(t), "..", "shared")
	dir := filepath.Join(shared, "golden")
	if _, err := os.Stat(dir); err != nil {
		return Own(t)
	}
	return thinned(t, load(t, dir, []string{filepath.Join(shared, "topos", "own"),
		filepath.Join(shared, "topos", "nvidia")}))
}

// Versions returns the references of other releases than 2.28.9: those of
// ../shared where that is present, which include the project's own, else the
// project's (testdata/topos/golden-versions, a directory a release); thinned as Own's.
func Versions(t testing.TB) []Reference {
	t.Helper()
	shared := filepath.Join(Root(t), "..", "shared")
	if dir := filepath.Join(shared, "golden-versions"); !testing.Short() {
		if _, err := os.Stat(dir); err == nil {
			return thinned(t, releases(t, dir, []string{filepath.Join(shared, "topos", "own"),
				filepath.Join(shared, "topos", "nvidia")}))
		}
	}
	return thinned(t, releases(t, Root(t, "testdata", "topos", "golden-versions"),
		[]string{Root(t, "testdata", "topos")}))
}

// releases loads the references below a directory that has one for each release.
func releases(t testing.TB, dir string, topos []string) []Reference {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.*.*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no release in %s (%v)", dir, err)
	}
	var refs []Reference
	for _, d := range list {
		of := load(t, d, append([]string{d}, topos...)) // random machines lie beside their documents
		for i := range of {
			of[i].Version = filepath.Base(d)
		}
		refs = append(refs, of...)
	}
	return refs
}

// Section decodes one key of the document into v; it reports false where the
// reference has no such key.
func (r *Reference) Section(t testing.TB, key string, v any) bool {
	t.Helper()
	raw, ok := r.Doc[key]
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: section %s: %v", r.Name, key, err)
	}
	return true
}

// Load reads the document, which Own and All leave on disk, because all of
// them together are large. It is idempotent.
func (r *Reference) Load(t testing.TB) {
	t.Helper()
	if r.Doc != nil {
		return
	}
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
}

func (r *Reference) read() error {
	f, err := os.Open(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &r.Doc)
}

// load lists the references of a directory; settings come from the documents,
// so each is read once here and dropped again.
func load(t testing.TB, dir string, topos []string) []Reference {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reference in %s (%v)", dir, err)
	}
	sort.Strings(files)
	var refs []Reference
	for _, file := range files {
		m := referenceName.FindStringSubmatch(filepath.Base(file))
		if m == nil {
			t.Fatalf("%s: not NAME[+nvls][@ENV].nN.json.gz", file)
		}
		r := Reference{Machine: m[1], File: file, Multicast: m[2] != ""}
		r.Name = filepath.Base(file)[:len(filepath.Base(file))-len(".json.gz")]
		r.Nodes, _ = strconv.Atoi(m[4])
		r.settle(t, topos)
		refs = append(refs, r)
	}
	return refs
}

// settle fills what only the document knows and finds the topology file.
func (r *Reference) settle(t testing.TB, topos []string) {
	t.Helper()
	if err := r.read(); err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	var topology string
	var args []string
	r.Section(t, "topology", &topology)
	r.Section(t, "env", &r.Env)
	r.Section(t, "args", &args)
	var kinds [][]json.RawMessage
	r.Section(t, "topologies", &kinds)
	r.Multicast = slices.Contains(args, "--nvls")
	r.Doc = nil
	find := func(name string) (found string) {
		for _, dir := range topos {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); name != "" && err == nil {
				found = path
			}
		}
		if found == "" {
			t.Fatalf("%s: its topology %q is in none of %v", r.Name, name, topos)
		}
		return found
	}
	r.Topo = find(topology)
	for _, k := range kinds {
		var name string
		var count int
		if len(k) != 2 || json.Unmarshal(k[0], &name) != nil || json.Unmarshal(k[1], &count) != nil {
			t.Fatalf("%s: topologies: %s, want a file and its number of nodes", r.Name, k)
		}
		r.Kinds = append(r.Kinds, Kind{find(name), count})
	}
}

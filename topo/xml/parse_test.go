package topoxml_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func files(t testing.TB, dirs ...string) []string {
	t.Helper()
	var out []string
	for _, d := range dirs {
		found, err := filepath.Glob(filepath.Join(d, "*.xml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if !strings.HasSuffix(f, ".graph.xml") {
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("no topology files")
	}
	return out
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// identity reads a file, writes it and reads that: nothing may be lost.
func identity(t *testing.T, file string) (problem bool) {
	t.Helper()
	name := filepath.Base(file)
	spec, err := topoxml.Parse(read(t, file), name)
	if err != nil {
		t.Logf("refused: %v", err)
		return true
	}
	out := topoxml.Write(spec.Root)
	again, err := topoxml.Parse(out, name)
	if err != nil {
		t.Errorf("%s: what was written cannot be read: %v", name, err)
		return
	}
	if second := topoxml.Write(again.Root); !bytes.Equal(out, second) {
		t.Errorf("%s: reading and writing changed it:\n%s", name, cmp.Diff(string(out), string(second)))
	}
	return false
}

func TestOwnFilesKeepTheirText(t *testing.T) {
	for _, f := range files(t, golden.Root(t, "testdata", "topos")) {
		identity(t, f)
		data := read(t, f)
		spec, err := topoxml.Parse(data, filepath.Base(f))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(data), string(topoxml.Write(spec.Root))); d != "" {
			t.Errorf("%s is not in the form NCCL writes:\n%s", filepath.Base(f), d)
		}
		for _, w := range spec.Warnings {
			t.Errorf("warning on our own file: %v", w)
		}
	}
}

func TestSharedFilesKeepTheirContent(t *testing.T) {
	dir := golden.Shared(t, "topos")
	for _, f := range files(t, filepath.Join(dir, "own"), filepath.Join(dir, "nvidia"),
		filepath.Join(dir, "templates")) {
		if identity(t, f) {
			t.Errorf("%s was refused", filepath.Base(f))
		}
	}
}

// TestOddFiles gives every strange file a result, a warning or an error with a
// place; nothing panics.
func TestOddFiles(t *testing.T) {
	dir := golden.Shared(t, "topos", "odd")
	want := map[string]string{ // what must be said about a file
		"gb10-midtag-newline.xml":                        "a line end or tab inside a tag",
		"gb300-2tray-redacted-hosthash-as-published.xml": "not a hexadecimal number",
		"hygon-dtk26-topo-mapping-v2.xml":                "version 2 is that of RCCL's files",
		"rubin-vr200-mlopart-two-ranks-one-gpu.xml":      "a second GPU in one <pci>",
		"modal-b200-vm-4-synthetic-pix.xml":              "also holds a <nic>",
		"aws-p5-48xl-2026-xml-node-overflow.xml":         "",
		"a100-pcie-x2-asymmetric-nvlink.xml":             "",
		"h100-gpu7-invisible-nvswitch.xml":               "",
		"modal-b200-vm-3-nvlink-peers-as-switch.xml":     "",
		"gb300-nvl72-2tray-rank5-no-nvlink.xml":          "",
		"missing-cpu-arch-attributes.xml":                "no <gpu>",
	}
	for _, f := range files(t, dir) {
		name := filepath.Base(f)
		said := ""
		spec, err := topoxml.Parse(read(t, f), name)
		if err == nil {
			for _, w := range spec.Warnings {
				said += w.Error() + "\n"
			}
			p := topo.DefaultParams()
			p.NRanks = 32
			_, err = topo.Build(spec, p)
		}
		if err != nil {
			said += err.Error()
			var e *topo.Error
			if !errors.As(err, &e) || e.Pos.Line == 0 {
				t.Errorf("%s: an error without a place: %v", name, err)
			}
		}
		t.Logf("%s: %s", name, said)
		if !strings.Contains(said, want[name]) {
			t.Errorf("%s: want %q to be said, got %q", name, want[name], said)
		}
	}
}

func TestProblemsHavePlaceAndRemedy(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text for a number", "<system version=\"1\">\n  <cpu numaid=\"0\">\n" +
			"    <pci busid=\"0000:1b:00.0\" link_width=\"x16\"/>\n  </cpu>\n</system>\n",
			`f.xml:3:31: system/cpu[0]/pci[0]: link_width="x16": not an integer; write 16`},
		{"two at once", `<system version="1"><cpu numaid="zero"/><cpu numaid="one"/></system>`,
			"f.xml:1:26: system/cpu[0]: numaid=\"zero\": not an integer; write a number\n" +
				"f.xml:1:46: system/cpu[1]: numaid=\"one\": not an integer; write a number"},
		{"wrong version", `<system version="3"/>`,
			`f.xml:1:9: system: version="3": only version 1 is known, to NCCL as well`},
		{"RCCL's version", `<system version="2"/>`,
			`f.xml:1:9: system: version="2": version 2 is that of RCCL's files, whose GPUs have gcn`},
		{"AMD's GPU in a file of NCCL", `<system version="1"><cpu numaid="0"><pci busid="1:0.0">` +
			`<gpu dev="0" sm="304" gcn="gfx942" arch="38911"/></pci></cpu></system>`,
			`f.xml:1:9: system: version="1": the file has GPUs of AMD (gcn, arch or xgmi), and RCCL reads ` +
				`version 2 only; write version="2"`},
		{"a GPU without its architecture", `<system version="2"><cpu numaid="0"><pci busid="1:0.0">` +
			`<gpu dev="0" sm="304" arch="38911"/></pci></cpu></system>`,
			`f.xml:1:56: system/cpu[0]/pci[0]/gpu[0]: gcn: is missing; write <gpu gcn="..."`},
		{"wrong root", `<graphs version="1"/>`, `f.xml:1:1: graphs: the outermost element is not <system>`},
		{"cut off", "<system version=\"1\">\n<cpu numaid=\"0\">",
			`f.xml:2:17: the file ends inside an element`},
		{"not XML", `busid,speed`, `f.xml:1:1: no XML element`},
		{"bad bus id", `<system version="1"><cpu numaid="0"><pci busid="slot 3"/></cpu></system>`,
			`not a PCI address; write for example 0000:1b:00.0`},
		{"bad hash", `<system version="1"><cpu numaid="0" host_hash="redacted"/></system>`,
			`not a hexadecimal number of 64 bits`},
		{"doctype", `<!DOCTYPE a [<!ENTITY b "c">]><system version="1"/>`,
			`f.xml:1:1: a document type declaration`},
		{"entity", `<system version="1" name="&b;"/>`, `not well-formed XML`},
		{"deep", strings.Repeat("<system>", 100), `more than 64 levels`},
	} {
		_, err := topoxml.Parse([]byte(c.in), "f.xml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
}

func TestWhatNCCLCannotReadIsAWarning(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"two blanks", `<system  version="1"/>`, "two blanks inside a tag"},
		{"unknown element", `<system version="1"><rack/></system>`,
			"f.xml:1:21: system/rack[0]: NCCL skips this element"},
		{"unknown attribute", `<system version="1" colour="red"/>`,
			`f.xml:1:21: system: colour="red": NCCL does not know this attribute`},
		{"declaration", `<?xml version="1.0"?><system version="1"/>`, "an XML declaration"},
		{"long", `<system version="1" name="` + strings.Repeat("x", 300) + `"/>`,
			"longer than the 255 characters"},
	} {
		spec, err := topoxml.Parse([]byte(c.in), "f.xml")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		said := ""
		for _, w := range spec.Warnings {
			said += w.Error() + "\n"
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: want %q, got %q", c.name, c.want, said)
		}
	}
}

// TestAttributePositions: every attribute has its own place, however the tag is
// written.
func TestAttributePositions(t *testing.T) {
	text := "<system version = \"1\"\n\tname='a b=\"c\" d=e'>\n" +
		"  <cpu  numaid=\"0\" arch=\"numaid = x\" numaid=\"1\"/>\n</system>"
	spec, err := topoxml.Parse([]byte(text), "f.xml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	decl.RootPlace(spec.Root).Walk(func(p *decl.Place) {
		for _, a := range p.Elem.Attrs {
			got = append(got, fmt.Sprintf("%s@%d:%d", a.Name, a.Origin.Line, a.Origin.Col))
		}
	})
	want := []string{"version@1:9", "name@2:2", "numaid@3:9", "arch@3:20", "numaid@3:38"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWarningsAreCounted: of equal warnings ten are kept, and their number.
func TestWarningsAreCounted(t *testing.T) {
	spec, err := topoxml.Parse([]byte(`<system version="1">`+strings.Repeat("<rack/>", 5000)+
		strings.Repeat("<cpu numaid=\"0\"  />", 3)+`</system>`), "f.xml")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(spec.Warnings); n != 10+3+1 { // racks, blanks, and that there are too many children
		for _, w := range spec.Warnings {
			t.Log(w)
		}
		t.Errorf("%d warnings", n)
	}
	if last := spec.Warnings[10].Error(); !strings.Contains(last,
		"rack[9]: NCCL skips this element and all inside it (and 4990 more of this kind)") {
		t.Error(last)
	}
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "<e%d/>", i)
	}
	spec, err = topoxml.Parse([]byte(`<system version="1">`+many.String()+`</system>`), "f.xml")
	if err != nil || len(spec.Warnings) != 1001 || !strings.Contains(spec.Warnings[1000].Error(),
		"2001 more warnings") {
		t.Errorf("%d warnings, %v, the last %v", len(spec.Warnings), err, spec.Warnings[len(spec.Warnings)-1])
	}
}

func FuzzTopoXML(f *testing.F) {
	for _, m := range []string{"h200x4-2", "gh200", "dgx-1v"} {
		f.Add(read(f, golden.Root(f, "testdata", "topos", m+".xml")))
	}
	f.Add([]byte(
		`<system version="1"><cpu numaid="0"><pci busid="1" class="0x03"><gpu sm="90" dev="0"><nvlink target="1" count="2" tclass="0x03"/></gpu></pci></cpu></system>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := topoxml.Parse(data, "fuzz")
		if err != nil {
			if spec != nil && spec.Root == nil {
				t.Fatal("half a Spec")
			}
			return
		}
		text := topoxml.Write(spec.Root)
		again, err := topoxml.Parse(text, "fuzz")
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if second := topoxml.Write(again.Root); !bytes.Equal(text, second) {
			t.Fatalf("reading and writing changed it:\n%s\nis now\n%s", text, second)
		}
		p := topo.DefaultParams()
		p.NRanks = 8
		_, _ = topo.Build(spec, p) // an error is fine, a panic is not
	})
}

func BenchmarkParse(b *testing.B) {
	data := read(b, golden.Root(b, "testdata", "topos", "dgx-h100.xml"))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := topoxml.Parse(data, "dgx-h100.xml"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWhatOlderParsersFailOn: single quotes before 2.27.3 (2.26.6 graph/xml.cc:57, 2.27.3 :60), more
// than 128 children before 2.29.7 and more than 640 in any release (graph/xml.h).
func TestWhatOlderParsersFailOn(t *testing.T) {
	host := func(n int, version string) string {
		return `<system version=` + version + `><cpu numaid="0">` +
			strings.Repeat(`<pci busid="0000:01:00.0"/>`, n) + `</cpu></system>`
	}
	for _, c := range []struct{ text, want string }{
		{host(1, `'1'`), "t.xml:1:16: system: single quotes: NCCL before 2.27.3 reads on to the next double one"},
		{host(128, `"1"`), ""},
		{host(129, `"1"`), "129 children, NCCL before 2.29.7 fails with more than 128"},
		{host(641, `"1"`), "641 children, NCCL fails with more than 640"},
	} {
		spec, err := topoxml.Parse([]byte(c.text), "t.xml")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range spec.Warnings {
			if text := w.Error(); strings.Contains(text, "children") || strings.Contains(text, "quotes") {
				got += text
			}
		}
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%.60s: %q, want %q", c.text, got, c.want)
		}
	}
}

package envelope

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
)

// plain is text of a log: a line of blanks, a tree, an arrow, a table's bar.
var plain = []string{
	"node0:7:8 [0] NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===",
	"node0:7:8 [0] NCCL INFO CPU/0-0 (1/1/2)",
	"node0:7:8 [0] NCCL INFO + PCI[24.0] - GPU/0-1000 (0)",
	"node0:7:8 [0] NCCL INFO               + NVL[264.0] - NVS/0-0",
	"node0:9:9 [1] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
	"node0:9:9 [1] NCCL INFO     AllReduce |     9.0/   3.0 |",
}

func each(f func(i int, line string) string) string {
	var b strings.Builder
	for i, l := range plain {
		b.WriteString(f(i, l))
		b.WriteByte('\n')
	}
	return b.String()
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// saved are the forms in which a text is found, whose lines Open gives back alone.
var saved = map[string]string{
	"plain": each(func(_ int, l string) string { return l }),
	"CRLF":  each(func(_ int, l string) string { return l + "\r" }),
	"CR":    strings.Join(plain, "\r"),
	"mark":  "\xef\xbb\xbf" + strings.Join(plain, "\n"),
	"colours": each(func(_ int, l string) string {
		return "\x1b[36m" + l[:9] + "\x1b(B\x1b[0m" + l[9:] + "\x1b[K"
	}),
	"title": each(func(_ int, l string) string { return "\x1b]0;title\x07" + l }),
	"links": each(func(_ int, l string) string {
		return "\x1b]8;;https://x\x1b\\" + l + "\x1b]8;;\x1b\\"
	}),
	"cat -v":      each(func(_ int, l string) string { return "^[[1m" + l + "^[[0m" }),
	"escape lost": each(func(_ int, l string) string { return "[4m" + l + "[0m" }),
	"overstruck":  each(func(_ int, l string) string { return "n\b" + l }),
	"entities":    html.EscapeString(each(func(_ int, l string) string { return l })),
	"page": "<!DOCTYPE html>\n<html><head><style>p { x }\n</style></head><body><pre>\n" +
		html.EscapeString(strings.Join(plain, "\n")) + "\n</pre></body></html>\n",
	"docker": each(func(_ int, l string) string {
		return `{"log":` + quoted(l+"\n") + `,"stream":"stdout","time":"2026-11-29T08:00:00Z"}`
	}),
	"journal JSON": each(func(i int, l string) string {
		return fmt.Sprintf(`{"__CURSOR":"%d","MESSAGE":%s}`, i, quoted(l))
	}),
	"CRI": each(func(_ int, l string) string {
		return "2026-11-29T08:00:00.123456789Z stdout F " + l
	}),
	"CRI in pieces": each(func(_ int, l string) string {
		return "2026-11-29T08:00:00.1Z stdout P " + l[:9] + "\n2026-11-29T08:00:00.1Z stdout F " + l[9:]
	}),
	"journal":  each(func(_ int, l string) string { return "Nov 29 08:00:00 host1 job[123]: " + l }),
	"grep -n":  each(func(i int, l string) string { return fmt.Sprintf("%d:%s", 3*i+8, l) }),
	"grep -nH": each(func(i int, l string) string { return fmt.Sprintf("run.log:%d:%s", 3*i+8, l) }),
	"grep -nC": each(func(i int, l string) string {
		return fmt.Sprintf("%d%s%s\n--", i+8, ":-:"[i%2:i%2+1], l)
	}),
	"cat -n":         each(func(i int, l string) string { return fmt.Sprintf("%6d\t%s", i+1, l) }),
	"quoted":         each(func(_ int, l string) string { return "> " + l }),
	"quoted twice":   each(func(_ int, l string) string { return "> > " + l }),
	"fenced":         "```text\n" + each(func(_ int, l string) string { return l }) + "```\n",
	"fenced, quoted": "> ```\n" + each(func(_ int, l string) string { return "> " + l }) + "> ```\n",
	"tagged":         each(func(i int, l string) string { return fmt.Sprintf("[1,%d]<stdout>:%s", i, l) }),
	"tagged, Open 5": each(func(i int, l string) string {
		return fmt.Sprintf("[prterun-h-1@1,%d]<stdout>: %s", i, l)
	}),
	"mpirun times": each(func(i int, l string) string {
		return fmt.Sprintf("Sun Nov 29 08:00:00 2026[1,%d]<stdout>:%s", i, l)
	}),
	"srun":     each(func(i int, l string) string { return fmt.Sprintf("%2d: %s", i*5%7, l) }),
	"torchrun": each(func(i int, l string) string { return fmt.Sprintf("[default%d]:%s", i, l) }),
	"Ray": each(func(i int, l string) string {
		return fmt.Sprintf("\x1b[36m(Worker pid=%d, ip=10.0.0.1)\x1b[0m %s", i+400, l)
	}),
	"kubectl":  each(func(_ int, l string) string { return "[pod/worker-0/nccl] " + l }),
	"Compose":  each(func(_ int, l string) string { return "worker-1  | " + l }),
	"ISO time": each(func(_ int, l string) string { return "2026-11-29T08:00:00.123+01:00 " + l }),
	"ts":       each(func(_ int, l string) string { return "Nov 29 08:00:00 " + l }),
	"time, tag, JSON": each(func(i int, l string) string {
		return `{"log":` + quoted(fmt.Sprintf("2026-11-29 08:00:00,12 [1,%d]<stdout>:\x1b[1m%s\x1b[0m\n", i,
			l)) + `}`
	}),
}

func texts(t Text) []string {
	var out []string
	for _, l := range t.Lines {
		if strings.TrimSpace(l.Text) != "" && l.Text != "--" {
			out = append(out, l.Text)
		}
	}
	return out
}

func TestOpenGivesTheLinesOfEveryForm(t *testing.T) {
	for name, data := range saved {
		got, err := Open([]byte(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if lines := texts(got); !slices.Equal(lines, plain) {
			t.Errorf("%s: removed %q, lines\n%s", name, got.Removed, strings.Join(lines, "\n"))
		}
		if name != "plain" && len(got.Removed) == 0 {
			t.Errorf("%s: nothing is said to be removed", name)
		}
	}
}

func TestOpenUnpacks(t *testing.T) {
	text := []byte(saved["plain"])
	var gz, wide bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = z.Write(text)
	_ = z.Close()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range utf16.Encode([]rune(string(text))) {
		wide.Write([]byte{byte(u), byte(u >> 8)})
	}
	for name, data := range map[string][]byte{"gzip": gz.Bytes(), "zstd": enc.EncodeAll(text, nil),
		"both":   enc.EncodeAll(gz.Bytes(), nil),
		"UTF-16": append([]byte("\xff\xfe"), wide.Bytes()...), "UTF-16 without its mark": wide.Bytes()} {
		if got, err := Open(data); err != nil || !slices.Equal(texts(got), plain) {
			t.Errorf("%s: %v, %q", name, err, texts(got))
		}
	}
	var size *SizeError
	if _, err := open(gz.Bytes(), 100); !errors.As(err, &size) {
		t.Errorf("more than is read: %v", err)
	}
	for name, data := range map[string][]byte{"cut": gz.Bytes()[:20], "xz": []byte("\xfd7zXZ\x00…"),
		"zstd": []byte("\x28\xb5\x2f\xfd.....")} {
		var packed *PackedError
		if _, err := Open(data); !errors.As(err, &packed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenLeavesDocuments: XML, JSON, YAML and tables are what they are.
func TestOpenLeavesDocuments(t *testing.T) {
	for _, text := range []string{
		"<system version=\"1\">\n  <cpu numaid=\"0\" affinity=\"a&amp;b\"/>\n</system>\n",
		"{\"name\": \"a&amp;b\"}\n", "{\n \"log\": \"x\"\n}\n", "a: 1\nb: 2\nc: 3\nd: 4\n",
		"0.0 1\n1.0 2\n2.5 3\n",
		"#  size\n     1024     256\n     2048     512\n     4096    1024\n",
		"host0:1:2 [0] NCCL INFO a\nhost0:1:2 [0] NCCL INFO b\nhost0:1:3 [0] NCCL INFO c\n",
	} {
		got, err := Open([]byte(text))
		if err != nil || got.String() != text || len(got.Removed) > 0 {
			t.Errorf("%q: %v, %q, removed %q", text, err, got.String(), got.Removed)
		}
	}
	var escaped Text
	escaped, _ = Open([]byte("&lt;system version=&quot;1&quot;&gt;\n"))
	if escaped.String() != "<system version=\"1\">\n" {
		t.Errorf("escaped XML: %q", escaped.String())
	}
}

// TestOpenKeepsPlaces: numbers are lines of the file, columns bytes in them.
func TestOpenKeepsPlaces(t *testing.T) {
	got, err := Open([]byte("```\n> 7:one\n> 9:two\n\n> 12:three\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, l := range got.Lines {
		if l.Text != "" {
			at = append(at, fmt.Sprintf("%d:%d:%s", l.Number, l.Column, l.Text))
		}
	}
	if want := []string{"2:5:one", "3:5:two", "5:6:three"}; !slices.Equal(at, want) {
		t.Errorf("%q, want %q", at, want)
	}
	if got, _ = Open([]byte("a\rb\rc")); len(got.Lines) != 3 || got.Lines[2] != (Line{3, 1, "c"}) {
		t.Errorf("carriage returns alone: %v", got.Lines)
	}
	if got, _ = Open([]byte("x\n10%\r20%\rdone\n")); len(got.Lines) != 4 ||
		got.Lines[3] != (Line{2, 9, "done"}) {
		t.Errorf("a progress bar: %v", got.Lines)
	}
}

func TestOpenJoinsDockerPieces(t *testing.T) {
	long := strings.Repeat("x", dockerPiece)
	got, err := Open([]byte(`{"log":"` + long + `","stream":"stderr"}` + "\n" +
		`{"log":"other\n","stream":"stdout"}` + "\n" + `{"log":"end\n","stream":"stderr"}`))
	if err != nil || len(got.Lines) != 2 || got.Lines[0].Text != long+"end" || got.Lines[1].Text != "other" {
		t.Errorf("%v, %d lines", err, len(got.Lines))
	}
}

// TestPayload: what launchers write is taken away where the reader says that its
// lines begin.
func TestPayload(t *testing.T) {
	begins := func(s string) bool {
		return strings.HasPrefix(strings.TrimSpace(s), "1024 ") || strings.HasPrefix(s, "CPU/0-0") ||
			strings.HasPrefix(strings.TrimSpace(s), "GPU0")
	}
	for line, want := range map[string]string{
		"1024 256 float": "1024 256 float", "[1,0]<stdout>:     1024 256": "     1024 256",
		" 0:  1024 256": " 1024 256",
		"Wed Nov 25 10:11:12 2026[1,0]<stdout>:  1024 256": "  1024 256",
		"Wed Nov 25 10:11:12 2026<stdout>:  1024 256":      "  1024 256",
		"[0]  1024 256": "  1024 256", "[mpiexec@host1]  1024 256": "  1024 256", "host1: CPU/0-0": "CPU/0-0",
		"host1:CPU/0-0":                        "CPU/0-0",
		"(Worker pid=12, ip=10.0.0.1) CPU/0-0": " CPU/0-0", "[pod/a-0/nccl] CPU/0-0": "CPU/0-0",
		"worker-1  | CPU/0-0":                  "CPU/0-0",
		"2026-11-29 08:00:00,123 INFO CPU/0-0": "CPU/0-0", "[default3]:CPU/0-0": "CPU/0-0",
		"> \tGPU0\tGPU1": "\tGPU0\tGPU1", "12:\tGPU0": "\tGPU0",
		"Nov 29 08:00:00 h job[1]: CPU/0-0": "CPU/0-0", "host1\tCPU/0-0": "CPU/0-0",
		"nccl-0 worker CPU/0-0": "CPU/0-0", "log.txt:12:CPU/0-0": "CPU/0-0",
	} {
		got, at, ok := Payload(line, begins)
		if ok && strings.TrimSpace(got) == strings.TrimSpace(want) && line[at:] == got {
			continue
		}
		t.Errorf("%q: %q at %d, %v; want %q", line, got, at, ok, want)
	}
	if _, _, ok := Payload("Resource usage 1 2 3", begins); ok {
		t.Error("a line without what is looked for has a payload")
	}
}

func FuzzOpen(f *testing.F) {
	for _, data := range saved {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := open(data, 1<<20)
		if err != nil {
			return
		}
		n, last := 0, 0
		for _, l := range got.Lines {
			if l.Number < last || l.Column < 1 || strings.ContainsAny(l.Text, "\n\r") {
				t.Fatalf("line %+v after line %d", l, last)
			}
			last = l.Number
			n += len(l.Text)
		}
		if Packed(data) == "" && n > 3*len(data)+3 {
			t.Fatalf("%d bytes became %d", len(data), n)
		}
		for _, l := range got.Lines {
			if rest, at, ok := Payload(l.Text, func(s string) bool {
				return strings.HasPrefix(s, "CPU/")
			}); ok && l.Text[at:] != rest {
				t.Fatalf("%q: %q at %d", l.Text, rest, at)
			}
		}
	})
}

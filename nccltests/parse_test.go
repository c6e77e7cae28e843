package nccltests

import (
	"fmt"
	"strings"
	"testing"
)

// one reads a text of one table.
func one(text []byte) (*Parsed, error) {
	list, err := Parse(text, "")
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%d tables", len(list))
	}
	return list[0], nil
}

func parse(t *testing.T, text string) []*Parsed {
	t.Helper()
	list, err := Parse([]byte(text), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sum is the sizes and busbw of a table, out of place and in place.
func sum(p *Parsed) string {
	var b strings.Builder
	for i, r := range p.Rows {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d %s %s %d", r.Size, r.Type, r.RedOp, r.Root)
		for _, m := range []Measure{r.Out, r.In} {
			switch {
			case m.Missing:
				b.WriteString(" -")
			case m.Checked:
				fmt.Fprintf(&b, " %gus %g/%d", m.TimeUs, m.BusBW, m.Wrong)
			default:
				fmt.Fprintf(&b, " %gus %g/NA", m.TimeUs, m.BusBW)
			}
		}
	}
	return b.String()
}

const head = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     " +
	"time   algbw   busbw  #wrong\n"

// TestColumnsAreReadByTheHeader: releases and operations have other columns, and
// some are blank.
func TestColumnsAreReadByTheHeader(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"2.0 all_reduce", "#       size         count    type   redop     time   algbw   busbw  error     " +
			"time   algbw   busbw  error\n" +
			"     2097152        524288   float     sum    51.10   41.04   61.56  4e-07    50.20   41.78   " +
			"62.66  2e-07\n",
			"2097152 float sum -1 51.1us 61.56/0 50.2us 62.66/0"},
		{"2.9 broadcast", "#       size         count    type    root     time   algbw   busbw  error     " +
			"time   algbw   busbw  error\n" +
			"     2097152        524288   float       3    51.10   41.04   41.04  0e+00    50.20   41.78   " +
			"41.78    N/A\n",
			"2097152 float none 3 51.1us 41.04/0 50.2us 41.78/NA"},
		{"2.11 all_gather", "#       size         count      type     time   algbw   busbw  error     time " +
			"  algbw   busbw  error\n" +
			"     2097152        131072     float    51.10   41.04   30.78  0e+00    50.20   41.78   31.33 " +
			" 0e+00\n",
			"2097152 float none -1 51.1us 30.78/0 50.2us 31.33/0"},
		{"2.9 alltoall leaves redop blank", "#       size         count    type   redop     time   algbw   " +
			"busbw  error     time   algbw   busbw  error\n" +
			"     2097152        131072   float            51.10   41.04   30.78  0e+00    50.20   41.78   " +
			"31.33    N/A\n",
			"2097152 float none -1 51.1us 30.78/0 50.2us 31.33/NA"},
		{"1.0, milliseconds, out of place only",
			"#      bytes             N    type    root     time  algbw  busbw      res\n" +
				"     2097152        524288   float       0    0.051  41.04  41.04    0e+00\n",
			"2097152 float none 0 51us 41.04/0 -"},
		{"rccl-tests, in place only",
			"#                                                     in-place          \n" +
				"#       size         count      type   redop    root     time   algbw   busbw #wrong\n" +
				"     2097152        524288     float     sum      -1    51.10   41.04   61.56      2*\n",
			"2097152 float sum -1 - 51.1us 61.56/2"},
		{"2.17, a half that was not measured", head +
			"     2097152        524288     float     sum      -1                                    51.10 " +
			"  41.04   61.56       0\n",
			"2097152 float sum -1 - 51.1us 61.56/0"},
		{"N/A for a half", head +
			"     2097152        524288     float     sum      -1    51.10   41.04   61.56       0      " +
			"N/A     N/A     N/A     N/A\n",
			"2097152 float sum -1 51.1us 61.56/0 -"},
		{"columns of a newer release", strings.Replace(head, "\n", "  cycles  note\n", 1) +
			"     2097152        524288  bfloat16     sum      -1    51.10   41.04   61.56     N/A    " +
			"50.20   41.78   62.66     N/A  12  x\n",
			"2097152 bfloat16 sum -1 51.1us 61.56/NA 50.2us 62.66/NA"},
		{"columns of a newer release among the others", "# size count type redop root algo time algbw " +
			"busbw p99 #wrong time algbw busbw p99 #wrong note\n" +
			"2097152 524288 float sum -1 ring 51.10 41.04 61.56 ? 0 50.20 41.78 62.66 ? 0 x\n",
			"2097152 float sum -1 51.1us 61.56/0 50.2us 62.66/0"},
		{"as documentation shows it, without the sign", "        size         count      type   redop    " +
			"root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n" +
			"         (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) " +
			" (GB/s)  (GB/s)\n" +
			"     2097152        131072     float    none      -1    51.10   41.04   30.78    N/A    50.20 " +
			"  41.78   31.33    N/A\n",
			"2097152 float none -1 51.1us 30.78/NA 50.2us 31.33/NA"},
		{"-S 1 and one half", "# size count type redop root time algbw busbw #wrong timestamp\n" +
			"2097152 524288 float sum -1 51.10 41.04 61.56 0 2026-11-22 01:02:03\n",
			"2097152 float sum -1 51.1us 61.56/0 -"},
	} {
		list := parse(t, c.text)
		if len(list) != 1 || sum(list[0]) != c.want {
			t.Errorf("%s: %d tables, %s\nwant %s", c.name, len(list), sum(list[0]), c.want)
		}
	}
}

const row1 = "     4194304       1048576     float     sum      -1    71.30   58.83  110.30       0    " +
	"70.10   59.83  112.19       0\n"
const want1 = "4194304 float sum -1 71.3us 110.3/0 70.1us 112.19/0"

// TestLinesOfOthersAreLeftOutWithACount: what NCCL and launchers print, and rows
// that are not whole.
func TestLinesOfOthersAreLeftOutWithACount(t *testing.T) {
	const info = "nodez:91:120 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
	const cut = "    16777216       4194304     float     sum      -1"
	for _, c := range []struct{ name, text, want, left string }{
		{"INFO between", head + info + row1, want1, "1 line of other programs among the rows: left out"},
		{"INFO within a row, whose rest comes later", head + strings.TrimSuffix(row1[:52], "\n") + info +
			info + row1[52:], want1, "1 line of other programs among the rows: left out"},
		{"INFO between the halves", head + row1[:84] + info + row1[84:], want1, ""},
		{"INFO after the root and after a half", head + row1[:52] + info + row1[52:84] + info + row1[84:],
			want1, ""},
		{"a row behind what NCCL wrote", head + strings.TrimSuffix(info, "\n") + row1, want1, ""},
		{"a failure cuts a row", head + row1 + cut +
			" nodez: Test CUDA failure common.cu:401 'unspecified launch failure'\n", want1,
			"1 row that is not whole (line 3, column 54: a number is expected): left out"},
		{"a row that ends", head + row1 + cut + "   121.40  138.20\n", want1,
			"1 row that is not whole (line 3, column 70: the row ends after 7 of 13 columns): left out"},
		{"a value that is none", head + strings.Replace(row1, "112.19", "1l2.19", 1) + row1, want1,
			"1 row that is not whole (line 2, column 105: a number is expected): left out"},
		{"numbers of another program are no rest of a row", head + row1 + cut + "\n 1 2 3 4 5 6 7 8\n", want1,
			"1 line of other programs among the rows, 1 row that is not whole (line 3, column 53: the row " +
				"ends after 5 of 13 columns): left out"},
		{"prefixes that nobody knows", "<<a|7>> " + head + "<<a|7>> " + row1, want1, ""},
	} {
		list := parse(t, c.text)
		if len(list) != 1 || sum(list[0]) != c.want || list[0].Left() != c.left {
			t.Errorf("%s: %d tables, %s, %q\nwant %s, %q", c.name, len(list), sum(list[0]), list[0].Left(),
				c.want, c.left)
		}
	}
}

// TestSeveralTablesInOneFile: operations and numbers of ranks one after the other.
func TestSeveralTablesInOneFile(t *testing.T) {
	devices := func(n int) (out string) {
		for i := range n {
			out += fmt.Sprintf("#   Rank %2d Pid %6d on %10s device %2d [0x07] Tesla V100-SXM2-32GB\n", i,
				100+i, "nodez", i)
		}
		return out
	}
	const options = "# nThread 1 nGpus 1 minBytes 8 maxBytes 4194304 step: 2(factor) warmup iters: 5 " +
		"iters: 20 validation: 1 \n#\n# Using devices\n"
	const end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 111.2 \n#\n"
	list := parse(t, "+ mpirun -np 2 ./build/all_reduce_perf -b 8\n"+options+devices(2)+head+row1+end+
		"+ mpirun -np 4 ./build/all_gather_perf -b 8\n"+options+devices(4)+head+row1+row1+end)
	if len(list) != 2 || list[0].Ranks != 2 || list[1].Ranks != 4 ||
		list[0].Config.Program != "all_reduce_perf" ||
		list[1].Config.Program != "all_gather_perf" || len(list[1].Rows) != 2 ||
		list[0].Summary.AvgBusBW != 111.2 {
		t.Errorf("%d tables: %+v, %+v", len(list), list[0], list[len(list)-1])
	}
	if c := list[1].Config; c.Threads != 1 || c.MaxBytes != 4194304 || c.StepFactor != 2 || c.Warmup != 5 ||
		c.Iters != 20 || c.Check != 1 {
		t.Errorf("options of 2.9: %+v", c)
	}
	if got := len(parse(t, head+row1+"# Testing 2 cycle.\n"+row1)); got != 1 {
		t.Errorf("a second cycle of rccl-tests: %d tables", got)
	}
	if got := len(parse(t, head+row1+head+row1)); got != 2 {
		t.Errorf("two headers: %d tables", got)
	}
}

// TestErrorsOfTablesAreOurWords: nothing of strconv or encoding/json.
func TestErrorsOfTablesAreOurWords(t *testing.T) {
	for _, text := range []string{"hello\n", "1 2 3 4 5\n", "\x1f\x8bno gzip", ""} {
		_, err := Parse([]byte(text), "t.txt")
		if err == nil || !strings.HasPrefix(err.Error(), "t.txt:") || strings.Contains(err.Error(),
			"strconv") || strings.Contains(err.Error(), "bufio") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"{\n \"version\":3,\n \"results\":x}": "t.json:3:12: this is no JSON: " +
			"a value, a comma or a bracket is expected",
		`{"version":3,"results":[`:                                               "t.json:1:25: the JSON ends too early; was the run cut short?",
		`{"version":3,"results":[{"size":"8"}]}`:                                 "t.json:1:36: results.size: string is not what nccl-tests writes there",
		`{"version":3,"results":[{"root":"0","out_of_place":{"time":"1.2.3"}}]}`: `t.json: a number is expected, not "\"1.2.3\""`,
		`{"version":3,"results":[{"root":"x"}]}`:                                 `t.json: results[0].root: "x" is no rank`,
	} {
		if _, err := ParseJSON([]byte(text), "t.json"); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// TestTablesAsLaunchersWriteThem: each line behind what they put in front, or as
// they save it.
func TestTablesAsLaunchersWriteThem(t *testing.T) {
	text := "# nThread 1 nGpus 1 minBytes 4194304 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: " +
		"20 agg iters: 1 validation: 1 graph: 0\n" +
		"# Using devices\n#  Rank  0 Group  0 Pid  91 on nodez device  0 [0000:1b:00] NVIDIA H100\n" +
		"#  Rank  1 Group  0 Pid  92 on nodez device  1 [0000:2b:00] NVIDIA H100\n" +
		head + "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             " +
		"(us)  (GB/s)  (GB/s)\n" + row1 + "# Avg bus bandwidth    : 111.2\n"
	each := func(prefix string) string {
		var b strings.Builder
		n := 0
		for line := range strings.Lines(text) {
			n++
			b.WriteString(strings.ReplaceAll(prefix, "%d", fmt.Sprint(n)) + line)
		}
		return b.String()
	}
	docker, html := "", "<html><body><pre>\n"
	for line := range strings.Lines(text) {
		docker += fmt.Sprintf(`{"log":%q,"stream":"stdout","time":"2025-03-03T09:10:11.123456789Z"}`+"\n",
			line)
		html += strings.NewReplacer("  ", "&nbsp; ").Replace(line)
	}
	for name, x := range map[string]string{"plain": text, "tag": each("[1,0]<stdout>:"),
		"Open MPI 5": each("[job,0]<stdout>: "), "times": each("Mon Mar  3 09:10:11 2025<stdout>:"),
		"srun": each("0: "), "wide srun": each(" 12: "), "kubectl": each("[pod/a-launcher-0/main] "),
		"torchrun": each("[default0]:"), "pdsh": each("gpu-node-17: "), "compose": each("bench-1  | "),
		"kubetail": each("2025-03-03T09:10:11.123Z "), "journal": each("Mar  3 09:10:11 nodez nccl[91]: "),
		"grep": each("%d:"), "quote": each("> "), "docker": docker, "html": html + "</pre></body></html>\n",
		"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "unknown": each("~~ x ~~ ")} {
		list, err := Parse([]byte(x), "t.txt")
		if err != nil || len(list) != 1 || sum(list[0]) != want1 || list[0].Others+list[0].Cut > 0 {
			t.Errorf("%s: %v\n%s", name, err, x)
			continue
		}
		if p := list[0]; p.Ranks != 2 || p.Config.Iters != 20 || p.Summary.AvgBusBW != 111.2 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestErrorsInPackedTablesNameThePlaceInTheFile: lines and columns of what a
// launcher wrote.
func TestErrorsInPackedTablesNameThePlaceInTheFile(t *testing.T) {
	list := parse(t, "[1,0]<stdout>:"+head+"[1,0]<stdout>:"+row1+"[1,0]<stdout>:"+strings.Replace(row1,
		"112.19", "1l2.19", 1))
	if e := list[0].FirstCut; e == nil || e.Line != 3 || e.Column != 14+strings.Index(row1, "112.19")+1 {
		t.Errorf("%+v", e)
	}
}

// TestDevicesOfManyRanks: a table of more than 128 ranks lists the devices of its first and last host, says
// how many there are between, a brief one how many there are, and reads back with as many ranks and hosts.
func TestDevicesOfManyRanks(t *testing.T) {
	for _, c := range []struct {
		hosts, each, lines int
		brief              bool
	}{{16, 8, 128, false}, {17, 8, 17, false}, {128, 8, 17, false}, {130, 1, 3, false}, {1, 200, 200, false},
		{128, 8, 1, true}, {1, 8, 1, true}, {3, 1, 1, true}} {
		var devices []Device
		for i := range c.hosts * c.each {
			devices = append(devices, Device{Rank: i, Host: fmt.Sprintf("n%d", i/c.each),
				Device: i % c.each, BusID: "0000:1b:00", Name: "H100"})
		}
		var b strings.Builder
		table := NewTable(&b)
		table.Brief = c.brief
		table.Start(&Config{Program: "all_reduce_perf"}, devices)
		if err := table.Finish(&Config{}, &Summary{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "# Rank") + strings.Count(b.String(), "#  Rank") +
			strings.Count(b.String(), "#  ..."); n != c.lines {
			t.Errorf("%d x %d: %d lines of devices, want %d:\n%s", c.hosts, c.each, n, c.lines, b.String())
		}
		tables, err := Parse([]byte(b.String()), "t")
		if err != nil || len(tables) != 1 {
			t.Fatal(err, len(tables))
		}
		hosts := map[string]bool{}
		for _, d := range tables[0].Devices {
			hosts[d.Host] = true
		}
		if len(tables[0].Devices) != len(devices) || len(hosts) != c.hosts ||
			tables[0].Ranks != len(devices) {
			t.Errorf("%d x %d: read as %d devices on %d hosts, %d ranks", c.hosts, c.each,
				len(tables[0].Devices), len(hosts), tables[0].Ranks)
		}
	}
}

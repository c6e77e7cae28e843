package page

import (
	"fmt"
	"strings"
	"testing"
)

const (
	names = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     " +
		"time   algbw   busbw  #wrong\n"
	small = "     1048576        262144     float     sum      -1    31.30   33.50   62.80       0    " +
		"30.10   34.80   65.30       0\n"
	large = "     2097152        524288     float     sum      -1    41.30   50.80   95.20       0    " +
		"40.10   52.30   98.10       0\n"
)

func ranks(n int) (out string) {
	for i := range n {
		out += "#  Rank " + string(rune('0'+i)) + " Group  0 Pid  1 on n device  0 [0000:1b:00] NVIDIA H100\n"
	}
	return out
}

// TestTablesOfAFileThatFitAreDrawn: of several operations and numbers of ranks,
// those of the run; what was left out is said.
func TestTablesOfAFileThatFitAreDrawn(t *testing.T) {
	const start = "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n" +
		"# Collective test starting: "
	text := start + "all_gather_perf\n" + ranks(2) + names + small + start + "all_reduce_perf\n" + ranks(4) +
		names + small + start + "all_reduce_perf\n" + ranks(2) + names + small + large
	list, err := ReadMeasured([]byte(text), "x/all.txt", Wanted{"all_reduce_perf", 2})
	if err != nil || len(list) != 1 || list[0].Name != "all" || len(list[0].Points) != 2 ||
		strings.Join(list[0].Notes, "; ") !=
			"2 of 3 tables are of other operations or numbers of ranks: left out" {
		t.Errorf("%+v, %v", list, err)
	}
	list, err = ReadMeasured([]byte(text), "all.txt", Wanted{"all_reduce_perf", 8})
	if err != nil || len(list) != 2 || list[1].Name != "all, table 2" ||
		!strings.Contains(strings.Join(list[1].Notes, "; "), "measured on 2 ranks, the page is of 8") {
		t.Errorf("no table of as many ranks: %+v, %v", list, err)
	}
	if _, err = ReadMeasured([]byte(text), "all.txt", Wanted{"broadcast_perf", 2}); err == nil ||
		!strings.Contains(err.Error(), "the page is of broadcast_perf, measure the same operation") {
		t.Errorf("another operation: %v", err)
	}
}

// TestATableThatDoesNotSayItsOperationIsKnownByItsFactor: nccl-tests before 2.17 names
// none, and busbw by algbw is the operation's.
func TestATableThatDoesNotSayItsOperationIsKnownByItsFactor(t *testing.T) {
	row := func(alg, bus float64) string {
		return fmt.Sprintf("     1048576        262144     float     sum      -1    31.30  %6.2f  %6.2f    "+
			"   0    30.10  %6.2f  %6.2f       0\n", alg, bus, alg, bus)
	}
	for _, c := range []struct {
		name, text, program string
		ranks               int
		want                string
	}{
		{"all_reduce on 16", names + row(33.5, 62.8), "all_reduce_perf", 16, ""},
		{"all_reduce on 16, asked for 32", names + row(33.5, 62.8), "all_reduce_perf", 32,
			"busbw is 1.875 of algbw, and of all_reduce_perf on 32 ranks 1.9"},
		{"all_gather for all_reduce", names + row(33.5, 31.4), "all_reduce_perf", 16,
			"another operation, by its busbw and algbw"},
		{"broadcast for all_gather", ranks(4) + names + row(33.5, 33.5), "all_gather_perf", 4,
			"another operation, by its busbw and algbw"},
		{"all_gather on its ranks", ranks(4) + names + row(40, 30), "all_gather_perf", 4, ""},
		{"too slow to tell", names + row(0.02, 0.02), "all_gather_perf", 4, ""},
		{"reduce_scatter for broadcast", names + row(33.5, 31.4), "broadcast_perf", 16,
			"another operation, by its busbw and algbw"},
	} {
		list, err := ReadMeasured([]byte(c.text), "t.txt", Wanted{c.program, c.ranks})
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(list[0].Notes, "; ")
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", c.name, got, c.want)
		}
	}
}

// TestATableWithoutAWholeRowIsRefusedByItsPlace: with file, line and column.
func TestATableWithoutAWholeRowIsRefusedByItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		names + small[:70] + "\n": "t.txt:2:70: the row ends after 7 of 13 columns: ",
		names:                     "t.txt:1:1: the table has no row with a time; was the run cut short?",
		"hello\n":                 "t.txt: no nccl-tests table found: ",
		"{\n":                     "t.txt:2:1: the JSON ends too early",
	} {
		if _, err := ReadMeasured([]byte(text), "t.txt", Wanted{Program: "all_reduce_perf"}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

package grouplog

import (
	"strings"
	"testing"
)

func TestReadRefuses(t *testing.T) {
	const head = "GROUP 0 mode plain tasks 1\n"
	for _, x := range []struct{ text, want string }{
		{"", "f.txt:1:1: no line begins with GROUP"},
		{"GROUP x mode plain tasks 1", `f.txt:1:7: "x" is no number of a group`},
		{"GROUP 0 plain", "f.txt:1:1: a group is written GROUP 0 mode plain tasks 1"},
		{"GROUP 0 mode odd tasks 1", `f.txt:1:14: "odd" is no mode`},
		{head + "TASK 0 AllReduce", "f.txt:2:1: a task has 15 words"},
		{head + "TASK 0 AllRedoce count 1 type 7 op 0 root 0 shift 1 comm world", "f.txt:2:8: "},
		{head + "TASK 0 AllReduce count 1 type 12 op 0 root 0 shift 1 comm world",
			`f.txt:2:31: "12" is no type; give 0 to 11`},
		{head + "TASK 0 AllReduce count 1 tipe 7 op 0 root 0 shift 1 comm world",
			`f.txt:2:26: "tipe"; here type is written`},
		{head + "TASK 0 AllReduce count 1 type 7 op 0 root 0 shift 1 comm thirds",
			`f.txt:2:58: "thirds" is no communicator`},
		{head + "TIME 0 reps 2 best_us x", `f.txt:2:23: "x" is no time in us`},
	} {
		if _, err := Read(strings.NewReader(x.text), "f.txt"); err == nil || !strings.HasPrefix(err.Error(),
			x.want) {
			t.Errorf("%q: %v, want %s", x.text, err, x.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("GROUP 0 mode win tasks 1\nTASK 0 AllReduce count 1 type 7 op 0 root 0 shift 1 comm world\n" +
		"[0] NCCL INFO AllReduce: 4 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n" +
		"TIME 0 reps 20 best_us 4.5 median_us 5 bytes 512\n")
	f.Add("GROUP 1 mode split0 tasks 9\n\n  TASK")
	f.Fuzz(func(t *testing.T, text string) {
		groups, err := Read(strings.NewReader(text), "f")
		if (err == nil) != (len(groups) > 0) {
			t.Fatalf("%d groups, %v", len(groups), err)
		}
	})
}

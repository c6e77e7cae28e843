package decision_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/simccl/simccl/study/decision"
)

// edit is the document with a change made to its JSON.
func edit(t *testing.T, text []byte, change func(d map[string]any)) []byte {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	change(d)
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// in is the value at a place of a document.
func in(v any, place ...any) any {
	for _, step := range place {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
	}
	return v
}

// TestCompareNames: a change of each section reads in NCCL's words.
func TestCompareNames(t *testing.T) {
	now := document(t, "dgx-h100", 2, true)
	tests := []struct {
		want   string
		change func(d map[string]any)
	}{
		{"ranks: 99 → 16", func(d map[string]any) { d["nRanks"] = 99 }},
		{"setting NCCL_ALGO: Ring → none", func(d map[string]any) {
			d["env"] = map[string]any{"NCCL_ALGO": "Ring"}
		}},
		{"ring graph channel 0 order: 7 → 0 7 6 5 4 3 2 1", func(d map[string]any) {
			in(d, "graphs", 0, "channels", 0).(map[string]any)["intra"] = []any{7}
		}},
		{"tree graph of all ranks inter type: SYS → PIX", func(d map[string]any) {
			in(d, "graphsFinal", 1).(map[string]any)["typeInter"] = "SYS"
		}},
		{"channel 3 ring order: 1 2 → 0 1 2 10 9 8 15 14 13 12 11 3 4 5 6 7", func(d map[string]any) {
			in(d, "channels", "ringOrder").([]any)[3] = []any{1, 2}
		}},
		{"rank 1 channel 0 ring next: 5 → 9", func(d map[string]any) {
			in(d, "channels", "ranks", 1, "ch", 0).([]any)[1] = 5
		}},
		{"tuning table AllReduce Ring LL128 latency: 1 → 75.1999969", func(d map[string]any) {
			in(d, "tuning", "latencies", 4, 1).([]any)[1] = 1
		}},
		{"path GPU 0 → NET 1: SYS 1 GB/s 9 hops → PXN 48 GB/s 5 hops", func(d map[string]any) {
			in(d, "paths", "gpuNet", 0).([]any)[1] = map[string]any{"type": "SYS", "bw": 1, "hops": 9,
				"via": []any{}}
		}},
		{"GPU 3 compute capability: 80 → 90", func(d map[string]any) {
			in(d, "system", "gpus", 3).(map[string]any)["sm"] = 80
		}},
	}
	for _, test := range tests {
		d, err := decision.Compare(edit(t, now, test.change), now)
		if err != nil || d.Count != 1 || d.First[0].String() != test.want {
			t.Errorf("got %v %v, want %s", d.First, err, test.want)
		}
	}
}

// TestCompareChoices: neighbouring sizes with one change are one difference, of a
// whole document and of a summary; a summary says of the rest which section differs.
func TestCompareChoices(t *testing.T) {
	now := document(t, "dgx-h100", 2, true)
	was := edit(t, now, func(d map[string]any) {
		for _, v := range d["selection"].([]any) {
			if c := v.(map[string]any); c["func"] == "AllReduce" && c["size"].(float64) <= 1024 {
				c["algo"], c["proto"] = "PAT", "Simple"
			}
		}
		d["system"] = map[string]any{}
	})
	short, err := decision.Summarize(was)
	if err != nil {
		t.Fatal(err)
	}
	text, err := short.Encode()
	if err != nil || len(text)*10 > len(now) {
		t.Fatalf("%d bytes of %d, %v", len(text), len(now), err)
	}
	for _, stored := range [][]byte{was, text} {
		d, err := decision.Compare(stored, now)
		if err != nil || d.Count < 2 ||
			d.First[0].String() != "AllReduce 8 B to 1 KiB: PAT Simple → Tree LL" {
			t.Fatal(d, err)
		}
	}
	d, err := decision.Compare(text, now)
	if err != nil || d.Count != 2 || !d.Hashed || d.First[1].What != "section system" {
		t.Error(d, err)
	}
	if d, err = decision.Compare(now, now); err != nil || d.Count != 0 {
		t.Error(d, err)
	}
}

// TestCompareDetails: times that differ where the choice does not are one
// difference of a whole document, and a hash of a summary.
func TestCompareDetails(t *testing.T) {
	now := document(t, "dgx-h100", 2, true)
	was := edit(t, now, func(d map[string]any) { in(d, "selection", 0).(map[string]any)["timeUs"] = 1 })
	d, err := decision.Compare(was, now)
	if err != nil || d.Count != 1 ||
		d.First[0].What != "Broadcast 8 B Ring LL predicted time (at 8 B of the choice, us)" {
		t.Error(d, err)
	}
	short, err := decision.Summarize(was)
	if err != nil {
		t.Fatal(err)
	}
	text, err := short.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if d, err = decision.Compare(text, now); err != nil || d.Count != 1 ||
		d.First[0].What != "section selection" {
		t.Error(d, err)
	}
}

// TestCompareStored: what is stored may be any JSON; other than objects and
// summaries of another form it is compared.
func TestCompareStored(t *testing.T) {
	now := document(t, "dgx-h100", 2, true)
	for _, bad := range []string{"", "[]", "null", "7", `{"form":1}`, `{"form":2,"more":1}`,
		`{"form":2,"choices":{"AllReduce":[{"from":0,"to":8}]}}`,
		`{"form":2,"choices":{"AllReduce":[{"from":8,"to":16},{"from":8,"to":16}]}}`} {
		if d, err := decision.Compare([]byte(bad), now); err == nil {
			t.Errorf("%s: %v", bad, d)
		}
	}
	sections := []string{"system", "paths", "graphs", "graphsFinal", "domains", "channels", "tuning",
		"selection", "env", "notes", "more"}
	values := []any{nil, 7, "text\nof lines", []any{}, []any{[]any{[]any{nil}}},
		map[string]any{"gpus": []any{7}, "ranks": []any{map[string]any{"ch": []any{[]any{}}}},
			"gpuGpu": []any{[]any{nil}}, "\x1b": 1}}
	for _, section := range sections {
		for _, v := range values {
			d, err := decision.Compare(edit(t, now, func(d map[string]any) { d[section] = v }), now)
			same := slices.Contains([]string{"domains", "env", "notes"}, section)
			if err != nil || d.Count == 0 && !same {
				t.Errorf("%s as %v: %v %v", section, v, d, err)
			}
		}
	}
}

// TestHashesOfFloats: the last bit of a float does not change a hash; its sixth digit
// and the last of an integer do.
func TestHashesOfFloats(t *testing.T) {
	hash := func(section string) string {
		t.Helper()
		s, err := decision.Summarize([]byte(`{"section":` + section + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return s.Hashes["section"]
	}
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`{"bw":28.2000008}`, `{"bw":28.2000027}`, true}, {`{"bw":47.9999962}`, `{"bw":48}`, true},
		{`{"bw":28.2001}`, `{"bw":28.2002}`, false},
		{`{"count":17179869184}`, `{"count":17179869185}`, false},
		{`{"timeUs":8388608}`, `{"timeUs":8388609}`, true},
		{`{"times":[[1,8388608]]}`, `{"times":[[1,8388609]]}`, true},
		{`{"timeUs":8388608}`, `{"timeUs":8388708}`, false}, {`["1.00000001"]`, `["1.00000002"]`, false},
	} {
		if same := hash(test.a) == hash(test.b); same != test.same {
			t.Errorf("%s and %s: same hash %v", test.a, test.b, same)
		}
	}
}

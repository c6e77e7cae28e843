package check

import (
	"encoding/xml"
	"testing"
)

// TestReport: each verdict is counted once, and what has a meaning in an annotation is escaped.
func TestReport(t *testing.T) {
	rep := CIReport{Name: "check", Cases: []CICase{
		{Name: "equal"}, {Name: "absent", Skipped: true},
		{Name: "a,b:c", File: "a,b:c.args", Failure: "2 differences", First: "100% → 50%\n",
			Text: "<first>\nsecond"},
		{Name: "broken", Error: "no such file"}}}
	text, err := rep.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	var s suite
	if err := xml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Tests != 4 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 1 ||
		s.Cases[2].Failure.Text != "<first>\nsecond" || s.Cases[3].Error.Message != "no such file" {
		t.Errorf("%s", text)
	}
	const want = "::error file=a%2Cb%3Ac.args,title=simccl check a%2Cb%3Ac::2 differences; 100%25 → " +
		"50%25%0A\n" +
		"::error title=simccl check broken::no such file\n"
	if got := rep.Annotations(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

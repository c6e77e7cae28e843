package check

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// CIReport is a list of cases with their verdicts.
type CIReport struct {
	Name  string // of the suite
	Cases []CICase
}

// CICase is one verdict: Failure, Error, Skipped, or none of them where it passed.
type CICase struct {
	Name    string
	File    string // that an annotation belongs to; "" for none
	Failure string // what is wrong, in a few words
	First   string // the first difference of a failure
	Text    string // all differences that are listed, in lines
	Error   string // why there is no verdict
	Next    string // what to do about a failure; "" for none
	Seconds float64
	Skipped bool
}

type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr,omitempty"`
	Skipped  int        `xml:"skipped,attr"`
	Time     string     `xml:"time,attr,omitempty"` // seconds
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string    `xml:"name,attr"`
	Class   string    `xml:"classname,attr"`
	Time    string    `xml:"time,attr,omitempty"` // seconds
	Failure *message  `xml:"failure,omitempty"`
	Error   *message  `xml:"error,omitempty"`
	Skipped *struct{} `xml:"skipped,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit returns the report as JUnit XML with one suite.
func (rep *CIReport) JUnit() ([]byte, error) {
	s := suite{Name: rep.Name, Tests: len(rep.Cases)}
	sum := 0.0
	for _, c := range rep.Cases {
		t := testcase{Name: c.Name, Class: "simccl.check", Time: seconds(c.Seconds)}
		sum += c.Seconds
		switch {
		case c.Skipped:
			t.Skipped = &struct{}{}
			s.Skipped++
		case c.Error != "":
			t.Error = &message{Message: c.Error}
			s.Errors++
		case c.Failure != "":
			t.Failure = &message{Message: c.Failure, Text: strings.Trim(c.Text+"\n"+c.Next, "\n")}
			s.Failures++
		}
		s.Cases = append(s.Cases, t)
	}
	s.Time = seconds(sum)
	text, err := xml.MarshalIndent(s, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// seconds returns a duration as JUnit has it; "" where none was measured.
func seconds(v float64) string {
	if v <= 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", v)
}

var (
	escapeMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// Annotations are workflow commands of GitHub Actions, a line for each case that
// failed or has no verdict.
func (rep *CIReport) Annotations() string {
	var b strings.Builder
	for _, c := range rep.Cases {
		text := c.Error
		if c.Failure != "" {
			text = c.Failure + "; " + c.First
			if c.Next != "" {
				text += "\n" + c.Next
			}
		}
		if text == "" || c.Skipped {
			continue
		}
		b.WriteString("::error ")
		if c.File != "" {
			fmt.Fprintf(&b, "file=%s,", escapeProperty.Replace(c.File))
		}
		fmt.Fprintf(&b, "title=simccl check %s::%s\n", escapeProperty.Replace(c.Name),
			escapeMessage.Replace(text))
	}
	return b.String()
}

package logcheck

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Text is the report for a reader: a line a section, then the differences.
func (rep *Report) Text() string {
	var b strings.Builder
	verdict := "equal"
	if !rep.Equal {
		verdict = "different"
	}
	fmt.Fprintf(&b, "NCCL %s, %d communicators: %s\n\n%-10s %9s %9s\n", rep.Version, rep.Comms, verdict, "section", "compared", "equal")
	for _, n := range Names {
		s := rep.Sections[n.Name]
		if s.Compared == 0 {
			fmt.Fprintf(&b, "%-10s %9s %9s\n", n.Name, "-", "not in the log")
			continue
		}
		fmt.Fprintf(&b, "%-10s %9d %9d\n", n.Name, s.Compared, s.Equal)
	}
	for _, n := range Names {
		for i, d := range rep.Sections[n.Name].Differences {
			if i == 0 {
				fmt.Fprintf(&b, "\n%s\n", n.Name)
			}
			fmt.Fprintf(&b, "  %s\n", d)
		}
	}
	for i, note := range rep.Notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if rep.github {
		rep.annotate(&b)
	}
	return b.String()
}

// annotate adds an annotation for each section that differs (GitHub Actions,
// workflow commands).
func (rep *Report) annotate(b *strings.Builder) {
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for _, n := range Names {
		if s := rep.Sections[n.Name]; s.First != "" {
			fmt.Fprintf(b, "::error title=simccl check %s::%d of %d lines equal; %s\n", n.Name, s.Equal, s.Compared, escape.Replace(s.First))
		}
	}
}

// junitSuite is a JUnit report: one suite, a case a section.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *struct{}     `xml:"skipped,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit is the report as XML for CI servers.
func (rep *Report) junit() ([]byte, error) {
	suite := junitSuite{Name: "simccl check, NCCL " + rep.Version}
	for _, n := range Names {
		s := rep.Sections[n.Name]
		c := junitCase{Name: n.Name, Class: "simccl.check"}
		switch {
		case s.Compared == 0:
			c.Skipped = &struct{}{}
			suite.Skipped++
		case s.First != "":
			c.Failure = &junitFailure{Message: fmt.Sprintf("%d of %d lines equal", s.Equal, s.Compared), Text: strings.Join(s.Differences, "\n")}
			suite.Failures++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

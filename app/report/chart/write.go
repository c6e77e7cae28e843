package chart

import (
	"fmt"
	"strings"
)

// SVG is the figure as a file of its own.
func (f *Figure) SVG() string {
	var d Drawing
	d.Add(`<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt" viewBox="0 0 %g %g" `+
		`font-family="Helvetica, Arial, sans-serif" font-size="%g" role="img" aria-label="%s">`+
		`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", f.Width, f.Height, f.Width, f.Height, size,
		EscapeXML(f.Title))
	for _, s := range f.shapes {
		switch s.kind {
		case aLine:
			var path strings.Builder
			for i, p := range s.at {
				fmt.Fprintf(&path, "%s%.2f %.2f", map[bool]string{true: "M", false: "L"}[i == 0], p[0], p[1])
			}
			dash := strings.Trim(fmt.Sprint(s.dash), "[]")
			if dash != "" {
				dash = ` stroke-dasharray="` + dash + `"`
			}
			d.Add(`<path d="%s" fill="none" stroke="#%06x" stroke-width="%g"%s/>`, path.String(), int(s.ink),
				s.wide, dash)
		case aBox:
			d.Add(`<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="#%06x"/>`, s.at[0][0], s.at[0][1],
				s.at[1][0]-s.at[0][0], s.at[1][1]-s.at[0][1], int(s.ink))
		case aMark:
			if s.sides > 0 {
				var at strings.Builder
				for _, p := range s.corners() {
					fmt.Fprintf(&at, "%.2f,%.2f ", p[0], p[1])
				}
				d.Add(`<polygon points="%s" fill="#%06x"/>`, strings.TrimSpace(at.String()), int(s.ink))
				break
			}
			d.Add(`<circle cx="%.2f" cy="%.2f" r="%g" fill="#%06x"/>`, s.at[0][0], s.at[0][1], s.wide,
				int(s.ink))
		case aText:
			turn := ""
			if s.turned {
				turn = fmt.Sprintf(` transform="rotate(-90 %.2f %.2f)"`, s.at[0][0], s.at[0][1])
			}
			d.Add(`<text x="%.2f" y="%.2f" text-anchor="%s" fill="#%06x"%s>%s</text>`, s.at[0][0], s.at[0][1],
				s.anchor,
				int(s.ink), turn, EscapeXML(s.text))
		}
		d.Add("\n")
	}
	return d.String() + "</svg>\n"
}

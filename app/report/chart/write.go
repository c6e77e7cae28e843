package chart

import (
	"bytes"
	"fmt"
	"strings"

	"codeberg.org/go-pdf/fpdf"

	"github.com/simccl/simccl/app/report/svg"
)

// SVG is the figure as a file of its own.
func (f *Figure) SVG() string {
	var d svg.Drawing
	d.Add(`<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt" viewBox="0 0 %g %g" `+
		`font-family="Helvetica, Arial, sans-serif" font-size="%g" role="img" aria-label="%s">`+
		`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", f.Width, f.Height, f.Width, f.Height, size,
		svg.Escape(f.Title))
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
			d.Add(`<circle cx="%.2f" cy="%.2f" r="%g" fill="#%06x"/>`, s.at[0][0], s.at[0][1], s.wide,
				int(s.ink))
		case aText:
			turn := ""
			if s.turned {
				turn = fmt.Sprintf(` transform="rotate(-90 %.2f %.2f)"`, s.at[0][0], s.at[0][1])
			}
			d.Add(`<text x="%.2f" y="%.2f" text-anchor="%s" fill="#%06x"%s>%s</text>`, s.at[0][0], s.at[0][1],
				s.anchor,
				int(s.ink), turn, svg.Escape(s.text))
		}
		d.Add("\n")
	}
	return d.String() + "</svg>\n"
}

// Document is an empty document of the figure's size. Its dates are those of the clock where the caller sets
// no others.
func (f *Figure) Document() *fpdf.Fpdf {
	return fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: f.Width, Ht: f.Height}})
}

// PDF is the figure as the page of a document, in PDF's own Helvetica. Equal figures and dates give equal
// bytes.
func (f *Figure) PDF(p *fpdf.Fpdf) ([]byte, error) {
	p.SetCatalogSort(true)
	p.SetTitle(f.Title, true)
	p.SetAutoPageBreak(false, 0)
	p.SetMargins(0, 0, 0)
	p.AddPage()
	p.SetFont("Helvetica", "", size)
	p.SetLineJoinStyle("round")
	latin := p.UnicodeTranslatorFromDescriptor("") // code page 1252, which PDF's own fonts have
	for _, s := range f.shapes {
		r, g, b := int(s.ink)>>16, int(s.ink)>>8&0xff, int(s.ink)&0xff
		switch at := s.at[0]; s.kind {
		case aLine:
			p.SetDrawColor(r, g, b)
			p.SetLineWidth(s.wide)
			p.SetDashPattern(s.dash, 0)
			p.MoveTo(at[0], at[1])
			for _, q := range s.at[1:] {
				p.LineTo(q[0], q[1])
			}
			p.DrawPath("D")
		case aBox:
			p.SetFillColor(r, g, b)
			p.Rect(at[0], at[1], s.at[1][0]-at[0], s.at[1][1]-at[1], "F")
		case aMark:
			p.SetFillColor(r, g, b)
			p.Circle(at[0], at[1], s.wide, "F")
		case aText:
			p.SetTextColor(r, g, b)
			text := latin(s.text)
			back := map[string]float64{"middle": 0.5, "end": 1}[s.anchor] * p.GetStringWidth(text)
			if s.turned {
				p.TransformBegin()
				p.TransformRotate(90, at[0], at[1])
			}
			p.Text(at[0]-back, at[1], text)
			if s.turned {
				p.TransformEnd()
			}
		}
	}
	var out bytes.Buffer
	err := p.Output(&out)
	return out.Bytes(), err
}

//go:build !js

package chart

import (
	"bytes"

	"codeberg.org/go-pdf/fpdf"
)

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
			if s.sides == 0 {
				p.Circle(at[0], at[1], s.wide, "F")
				break
			}
			var corners []fpdf.PointType
			for _, c := range s.corners() {
				corners = append(corners, fpdf.PointType{X: c[0], Y: c[1]})
			}
			p.Polygon(corners, "F")
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

package chart

// Named is a chart with the name of its file, its heading, and a sentence on what it shows.
type Named struct {
	File, Title, Text string
	*Chart
}

// Figure is the chart for a paper.
func (n Named) Figure() *Figure {
	if n.Stacked {
		return n.stackFigure()
	}
	return n.CurvesFigure()
}

// stackFigure has a bar for each category of X, of one part for each group: Y over the bars' length.
func (c *Chart) stackFigure() *Figure {
	const row, head = 14.0, 20.0
	f := &Figure{Width: column, Height: head + row*float64(len(c.Cats)) + 26, Title: c.YName + " by " +
		c.XName}
	left, most := 8.0, 0.0
	sums := make([]float64, len(c.Cats))
	for i, name := range c.Cats {
		left = max(left, 8+wideOf(Short(name, mostName)))
		f.label(4, head+row*float64(i)+8.4, "start", Short(name, mostName))
	}
	for _, s := range c.Series {
		for _, p := range s.Points {
			sums[int(p.X)] += p.Y
			most = max(most, sums[int(p.X)])
		}
	}
	x := Scale{Hi: max(most*1.02, 1e-9), From: left, To: column - 10}
	foot := head + row*float64(len(c.Cats))
	for _, v := range ticks(&x) {
		f.line(line, 0.5, [2]float64{x.At(v), head - 2}, [2]float64{x.At(v), foot})
		f.label(x.At(v), foot+9, "middle", decimal(v))
	}
	from, key := make([]float64, len(c.Cats)), 4.0
	for i, s := range c.Series {
		colour := inks[i%len(inks)]
		f.add(shape{at: [][2]float64{{key, 4}, {key + 7, 11}}, kind: aBox, ink: colour})
		f.label(key+9, 10, "start", s.Name)
		key += 15 + wideOf(s.Name)
		for _, p := range s.Points {
			k := int(p.X)
			y := head + row*float64(k)
			if p.Y > 0 {
				f.add(shape{at: [][2]float64{{x.At(from[k]), y}, {x.At(from[k] + p.Y), y + row - 4}},
					kind: aBox,
					ink:  colour})
			}
			from[k] += p.Y
		}
	}
	f.label((left+column-10)/2, f.Height-5, "middle", axis(c.YName))
	return f
}

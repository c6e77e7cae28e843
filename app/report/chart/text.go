package chart

import (
	"fmt"
	"slices"
	"strings"
)

// marks distinguish groups in text.
const marks = "*o+x#@%&abcdefghijklmnpqrstuvwyz"

// Size of a plot in characters, without its labels.
const textWidth, textHeight = 64, 18

// canvas is a plot of characters.
type canvas struct {
	cells [][]rune
	x, y  Scale
}

func (c *Chart) canvas() *canvas {
	t := &canvas{cells: make([][]rune, textHeight)}
	for i := range t.cells {
		t.cells[i] = []rune(strings.Repeat(" ", textWidth))
	}
	t.x, t.y = c.scales()
	t.x.From, t.x.To, t.y.From, t.y.To = 0, textWidth-1, textHeight-1, 0
	return t
}

func (t *canvas) mark(x, y float64, r rune) {
	col, row := int(t.x.At(x)+.5), int(t.y.At(y)+.5)
	if row >= 0 && row < textHeight && col >= 0 && col < textWidth {
		t.cells[row][col] = r
	}
}

// Text draws the curves with a character a group.
func (c *Chart) Text() string {
	if len(c.Series) == 0 {
		return "nothing to draw\n"
	}
	t := c.canvas()
	for i, s := range c.Series {
		for _, p := range s.Points {
			t.mark(p.X, p.Y, rune(marks[i%len(marks)]))
		}
	}
	var b strings.Builder
	c.frameText(&b, t)
	if len(c.Series) > 1 || c.Series[0].Name != "" {
		for i, s := range c.Series {
			fmt.Fprintf(&b, "  %c %s\n", marks[i%len(marks)], s.Name)
		}
	}
	return b.String()
}

// frameText prints a plot between its axes.
func (c *Chart) frameText(b *strings.Builder, t *canvas) {
	at := map[int]string{}
	for _, v := range ticks(&t.y) {
		at[int(t.y.At(v)+.5)] = c.tick(c.YName, v)
	}
	fmt.Fprintf(b, "%s\n", c.YName)
	for i, row := range t.cells {
		fmt.Fprintf(b, "%9s |%s\n", at[i], strings.TrimRight(string(row), " "))
	}
	fmt.Fprintf(b, "%9s +%s\n", "", strings.Repeat("-", textWidth))
	line := []rune(strings.Repeat(" ", textWidth+24))
	end := -1
	put := func(place float64, text string) {
		if from := max(0, int(place+.5)-len(text)/2); from > end {
			copy(line[from:], []rune(text))
			end = from + len(text)
		}
	}
	if len(c.Cats) > 0 {
		for i, n := range c.Cats {
			put(t.x.At(float64(i)), Short(n, 12))
		}
	} else {
		for _, v := range c.places(t.x) {
			put(t.x.At(v), c.tick(c.XName, v))
		}
	}
	fmt.Fprintf(b, "%9s  %s\n%9s  %s\n", "", strings.TrimRight(string(line), " "), "", c.XName)
}

// FrontText draws all points, those of the front as *, and lists these.
func (c *Chart) FrontText() string {
	if len(c.Series) == 0 {
		return "nothing to draw\n"
	}
	t := c.canvas()
	for _, s := range c.Series {
		for _, p := range s.Points {
			t.mark(p.X, p.Y, '.')
		}
	}
	front := c.Front()
	for _, p := range front {
		t.mark(p.X, p.Y, '*')
	}
	var b strings.Builder
	c.frameText(&b, t)
	for _, p := range front {
		fmt.Fprintf(&b, "  * %s %.5g, %s %.5g  %s\n", c.XName, p.X, c.YName, p.Y, p.Name)
	}
	return b.String()
}

// HeatText prints the cells as a table.
func (c *Chart) HeatText() string {
	cols := c.columns()
	if len(cols) == 0 {
		return "nothing to draw\n"
	}
	wide := 8
	for _, s := range c.Series {
		wide = max(wide, min(24, len([]rune(s.Name))))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s over %s, by %s\n%*s", c.YName, c.XName, c.ByName, wide, "")
	for _, x := range cols {
		fmt.Fprintf(&b, " %10s", Short(c.label(x), 10))
	}
	b.WriteByte('\n')
	for _, s := range c.Series {
		fmt.Fprintf(&b, "%*s", wide, Short(s.Name, 24))
		for _, x := range cols {
			i := slices.IndexFunc(s.Points, func(p Point) bool { return p.X == x })
			if i < 0 {
				fmt.Fprintf(&b, " %10s", "-")
				continue
			}
			fmt.Fprintf(&b, " %10.4g", s.Points[i].Y)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Table is the values of each group at the places of X, "" where it has none.
func (c *Chart) Table() (columns []string, cells [][]string) {
	at := c.columns()
	for _, x := range at {
		columns = append(columns, c.label(x))
	}
	for _, s := range c.Series {
		row := make([]string, len(at))
		for _, p := range s.Points {
			row[slices.Index(at, p.X)] = fmt.Sprintf("%.5g", p.Y)
		}
		cells = append(cells, row)
	}
	return columns, cells
}

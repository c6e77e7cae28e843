package table

// Kind is the type of a column's values.
type Kind int

// Kinds of columns.
const (
	Text  Kind = iota // UTF-8
	Int               // int64
	Float             // float64
)

// String returns the kind's name.
func (k Kind) String() string { return [...]string{"text", "int", "float"}[k] }

// Column is a value or null for each row. The one of Texts, Ints and Floats that its Kind selects has an
// entry per row, zero if Null is true.
type Column struct {
	Name   string
	Unit   string // "us", "GB/s", "B"; empty for none
	Kind   Kind
	Null   []bool
	Texts  []string
	Ints   []int64
	Floats []float64
}

// Table is a list of columns of equal length.
type Table struct {
	Rows    int
	Columns []*Column
	// About is metadata of the table: pairs of name and text.
	About [][2]string
}

// Add appends a value: a string, int64 or float64 as the Kind has it, an int64 where
// it is Float, or nil.
func (c *Column) Add(v any) {
	c.Null = append(c.Null, v == nil)
	switch c.Kind {
	case Text:
		s, _ := v.(string)
		c.Texts = append(c.Texts, s)
	case Int:
		i, _ := v.(int64)
		c.Ints = append(c.Ints, i)
	case Float:
		f, ok := v.(float64)
		if i, isInt := v.(int64); !ok && isInt {
			f = float64(i)
		}
		c.Floats = append(c.Floats, f)
	}
}

// At returns the value of row i, nil for null.
func (c *Column) At(i int) any {
	switch {
	case c.Null[i]:
		return nil
	case c.Kind == Text:
		return c.Texts[i]
	case c.Kind == Int:
		return c.Ints[i]
	}
	return c.Floats[i]
}

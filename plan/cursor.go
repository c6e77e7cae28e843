package plan

// Cursor makes the ops of one program, one by one, without allocating. The zero Cursor has no ops. A Cursor
// must not be copied while in use.
type Cursor struct{ ops Stream }

// Next makes the next op and sets every field of it; it returns false at the end of the program.
func (c *Cursor) Next(op *Op) bool { return c.ops != nil && c.ops.Next(op) }

// OpenInto sets c to the first op of a program that Programs listed. A Cursor opened on one program after
// another allocates only when the kind of program changes.
func (p *Plan) OpenInto(c *Cursor, pr *Program) { c.ops = p.gen.Open(pr, c.ops) }

// Open opens a program that Programs listed.
func (p *Plan) Open(pr *Program) *Cursor {
	c := new(Cursor)
	p.OpenInto(c, pr)
	return c
}

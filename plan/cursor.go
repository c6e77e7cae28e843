package plan

// Cursor makes the ops of one program, one by one, without allocating. The
// zero Cursor has no ops. A Cursor is not to be copied while in use.
type Cursor struct{ ops Stream }

// Next makes the next op; false where the program has ended. Every field of
// op is set.
func (c *Cursor) Next(op *Op) bool { return c.ops != nil && c.ops.Next(op) }

// OpenInto makes c the cursor of a program that Programs listed, at its first
// op. A cursor that is opened on one program after another allocates only
// where their kinds differ.
func (p *Plan) OpenInto(c *Cursor, pr *Program) { c.ops = p.gen.Open(pr, c.ops) }

// Open opens a program that Programs listed.
func (p *Plan) Open(pr *Program) *Cursor {
	c := new(Cursor)
	p.OpenInto(c, pr)
	return c
}

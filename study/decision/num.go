package decision

import "strconv"

// Num is a float32 that prints with nine significant digits, which distinguish any
// two float32 apart.
type Num float32

// MarshalJSON prints like C's %.9g.
func (n Num) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', 9, 64), nil
}

// Flag prints as 0 or 1.
type Flag bool

// MarshalJSON prints 0 or 1.
func (f Flag) MarshalJSON() ([]byte, error) {
	if f {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

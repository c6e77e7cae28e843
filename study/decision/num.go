package decision

import "strconv"

// Num is a float32 that prints with nine significant digits, which distinguish any
// two float32 apart.
type Num float32

// MarshalJSON formats the number like C's %.9g.
func (n Num) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', 9, 64), nil
}

// Flag is a bool that is 0 or 1 in JSON.
type Flag bool

// MarshalJSON writes 0 or 1.
func (f Flag) MarshalJSON() ([]byte, error) {
	if f {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

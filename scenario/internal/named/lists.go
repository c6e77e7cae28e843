package named

import "github.com/simccl/simccl/coll"

// Types reads a list of element types, of none float's; "all" is every type.
func Types(names []string) ([]coll.DataType, error) {
	if len(names) == 0 {
		return []coll.DataType{coll.Float32}, nil
	}
	var out []coll.DataType
	for _, name := range names {
		if name == "all" {
			return coll.DataTypes(), nil
		}
		t, err := coll.ParseDataType(name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Reductions reads a list of reductions of an operation, of none sum's; "all" is every one.
func Reductions(names []string, f coll.Func) ([]coll.RedOp, error) {
	var out []coll.RedOp
	for _, name := range names {
		if name == "all" {
			if !f.Reduces() {
				return []coll.RedOp{coll.Sum}, nil
			}
			return coll.RedOps(), nil
		}
		o, err := coll.ParseRedOp(name)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		out = []coll.RedOp{coll.Sum}
	}
	return out, nil
}

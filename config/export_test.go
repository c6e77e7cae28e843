package config

// Lookup returns a variable of the tables; nil if they have none of that name.
func Lookup(name string) *Var { return byName[name] }

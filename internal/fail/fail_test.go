package fail

import (
	"errors"
	"io/fs"
	"testing"
)

// TestNames: members in braces are printed under the caller's names, and values
// that look like members are left alone.
func TestNames(t *testing.T) {
	err := Usage("{Iters} %s: more than {Skip}", "{Iters}")
	if got, want := err.Error(), "Iters {Iters}: more than Skip"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Named(err, map[string]string{"Iters": "-n"}).Error(), "-n {Iters}: more than Skip"; got !=
		want {
		t.Errorf("%q, want %q", got, want)
	}
	if plain := errors.New("{Iters}"); Named(plain, map[string]string{"Iters": "-n"}) != plain {
		t.Error("an error of another type was changed")
	}
	err = Named(NotYet("kernels", "{Device} %d", 3), map[string]string{"Device": "-D"})
	if got, want := err.Error(), "-D 3: not available yet: kernels"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKinds: errors keep what they wrap and have the kind of their maker; of
// several the first counts.
func TestKinds(t *testing.T) {
	if Input(nil) != nil || Argument(nil) != nil || Unavailable(nil) != nil || Join(nil, nil) != nil {
		t.Error("no error became one")
	}
	in := Input(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist})
	if !errors.Is(in, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	var e *Error
	if all := Join(nil, in, Check("no")); !errors.As(all, &e) || e.Kind != AsOf || e.First != in ||
		all.Error() != in.Error()+"\nno" {
		t.Errorf("joined: %+v", e)
	}
	if !errors.As(Printed("no"), &e) || !e.Quiet || e.Kind != No {
		t.Errorf("printed: %+v", e)
	}
}

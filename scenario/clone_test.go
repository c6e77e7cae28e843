package scenario

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/dev/draw"
)

// TestCloneSharesNothing: whatever a Spec has is equal in its clone, and no list or map is the same.
func TestCloneSharesNothing(t *testing.T) {
	var s Spec
	draw.Fill(reflect.ValueOf(&s).Elem())
	c := s.Clone()
	if diff := cmp.Diff(s, c); diff != "" {
		t.Error(diff)
	}
	for _, name := range draw.Shared("", reflect.ValueOf(s), reflect.ValueOf(c)) {
		t.Errorf("%s is one of both", name)
	}
}

package packetrun

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/dev/draw"
)

// TestCloneSharesNothing: whatever a Request has is equal in its clone, and no list is the same.
func TestCloneSharesNothing(t *testing.T) {
	var r Request
	draw.Fill(reflect.ValueOf(&r).Elem())
	c := r.Clone()
	if diff := cmp.Diff(&r, c); diff != "" {
		t.Error(diff)
	}
	for _, name := range draw.Shared("", reflect.ValueOf(&r), reflect.ValueOf(c)) {
		t.Errorf("%s is one of both", name)
	}
	if (*Request)(nil).Clone() != nil {
		t.Error("none has a clone")
	}
}

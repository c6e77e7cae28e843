package psk

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/gtank/ristretto255"
)

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func scalarOf(t *testing.T, s string) *ristretto255.Scalar {
	t.Helper()
	y, err := ristretto255.NewScalar().SetCanonicalBytes(fromHex(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// TestDraftVectors: generator, shares, common element and key are those of
// draft-irtf-cfrg-cpace-21, appendix B, ristretto255 with SHA-512.
func TestDraftVectors(t *testing.T) {
	x := transcript{session: fromHex(t, "7e4b4791d6a8ef019b936c79fb7f2c57"), ada: []byte("ADa"),
		adb: []byte("ADb")}
	g := generator([]byte("Password"), fromHex(t, "6f630b425f726573706f6e6465720b415f696e69746961746f72"),
		x.session)
	ya := scalarOf(t, "da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08")
	yb := scalarOf(t, "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d")
	x.ya, x.yb = shareOf(ya, g), shareOf(yb, g)
	k, err := meet(ya, x.yb)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := meet(yb, x.ya); err != nil || !bytes.Equal(other, k) {
		t.Errorf("the responder computes %x, the initiator %x: %v", other, k, err)
	}
	x.derive(k)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"generator", g.Bytes(), "a6fc82c3b8968fbb2e06fee81ca858586dea50d248f0c7ca6a18b0902a30b36b"},
		{"share of A", x.ya, "d40fb265a7abeaee7939d91a585fe59f7053f982c296ec413c624c669308f87a"},
		{"share of B", x.yb, "08bcf6e9777a9c313a3db6daa510f2d398403319c2341bd506a92e672eb7e307"},
		{"common element", k, "e22b1ef7788f661478f3cddd4c600774fc0f41e6b711569190ff88fa0e607e09"},
		{"key", x.intermediate,
			"4c5469a16b2364c4b944ebc1a79e51d1674ad47db26e8718" +
				"154f59faebfaa52d8346f30aa58377117eb20d527f2cbc5c76" +
				"" +
				"381f7fd372e89df8239f87f2e02ed1"},
	} {
		if !bytes.Equal(c.got, fromHex(t, c.want)) {
			t.Errorf("%s: %x, the draft has %s", c.name, c.got, c.want)
		}
	}
}

// TestBadSharesAreRefused: the identity would make the key a constant; what is
// no canonical encoding is no element.
func TestBadSharesAreRefused(t *testing.T) {
	for _, share := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"2b3c6b8c4f3800e7aef6864025b4edb79bd599117e427c41bd47d93d654b4a51",
		"00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	} {
		if k, err := meet(newScalar(), fromHex(t, share)); err == nil {
			t.Errorf("share %s gives %x", share, k)
		}
	}
}

// TestSharesHideTheSecret: whatever an acceptor sends as its share, it could
// have sent with any other secret too. With generators a·B and b·B of two
// secrets, the share of scalar y under the first is that of y·a/b under the
// second, and y·a/b is as likely as y.
func TestSharesHideTheSecret(t *testing.T) {
	a, b, y := newScalar(), newScalar(), newScalar()
	ga := ristretto255.NewIdentityElement().ScalarBaseMult(a)
	gb := ristretto255.NewIdentityElement().ScalarBaseMult(b)
	other := ristretto255.NewScalar().Multiply(y, ristretto255.NewScalar().Multiply(a,
		ristretto255.NewScalar().Invert(b)))
	if !bytes.Equal(shareOf(y, ga), shareOf(other, gb)) {
		t.Error("a share tells two secrets apart")
	}
}

func TestLengthsAreLEB128(t *testing.T) {
	got := lvCat(make([]byte, 3), make([]byte, 300))
	if len(got) != 1+3+2+300 || got[0] != 3 || got[4] != 0xac || got[5] != 0x02 {
		t.Errorf("%x", got[:6])
	}
}

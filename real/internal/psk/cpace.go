package psk

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha512"
	"errors"

	"github.com/gtank/ristretto255"
)

// CPace, the balanced PAKE of draft-irtf-cfrg-cpace-21, suite CPACE-RISTRETTO255-SHA512, initiator and
// responder, with the draft's explicit key confirmation. Its test vectors are this package's tests.
//
// Both sides hash the secret to a generator g of the group. Each draws a scalar y and sends Y = y·g, which is
// a uniformly random element whatever the secret is. Both then compute K = y·Y' and hash it. A side with
// another secret computed another g, and gets another K without any hint of the right secret.

const (
	suite     = "CPaceRistretto255"
	shareSize = 32 // an encoded group element
	tagSize   = sha512.Size
)

// errShare reports a share that is no group element, or the identity, which would make K a constant.
var errShare = errors.New("the peer's share is no valid group element")

// lvCat concatenates parts, each preceded by its length in LEB128.
func lvCat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		n := len(p)
		for ; n >= 0x80; n >>= 7 {
			out = append(out, byte(n)|0x80)
		}
		out = append(append(out, byte(n)), p...)
	}
	return out
}

// generator hashes a secret, the channel's identifier and the session's to a generator. Zeros fill the hash's
// first block, so that the time does not depend on the secret.
func generator(secret, channel, session []byte) *ristretto255.Element {
	head := len(lvCat([]byte(suite), secret))
	zeros := make([]byte, max(0, sha512.BlockSize-1-head))
	sum := sha512.Sum512(lvCat([]byte(suite), secret, zeros, channel, session))
	g, err := ristretto255.NewIdentityElement().SetUniformBytes(sum[:])
	if err != nil {
		panic(err) // only for a length other than 64
	}
	return g
}

func newScalar() *ristretto255.Scalar {
	var wide [64]byte
	_, _ = rand.Read(wide[:]) // never fails
	y, err := ristretto255.NewScalar().SetUniformBytes(wide[:])
	if err != nil {
		panic(err) // only for a length other than 64
	}
	return y
}

// shareOf returns the share that a side sends: its scalar times the generator.
func shareOf(y *ristretto255.Scalar, g *ristretto255.Element) []byte {
	return ristretto255.NewIdentityElement().ScalarMult(y, g).Bytes()
}

// meet returns the common element: a side's scalar times the other side's share. Error: errShare.
func meet(y *ristretto255.Scalar, share []byte) ([]byte, error) {
	far, err := ristretto255.NewIdentityElement().SetCanonicalBytes(share)
	if err != nil {
		return nil, errShare
	}
	k := ristretto255.NewIdentityElement().ScalarMult(y, far)
	if k.Equal(ristretto255.NewIdentityElement()) == 1 {
		return nil, errShare
	}
	return k.Bytes(), nil
}

// transcript holds the data that both sides exchanged: shares and associated data, the initiator's first.
type transcript struct {
	session      []byte
	ya, ada      []byte
	yb, adb      []byte
	intermediate []byte // ISK: the key that both sides derive
}

// derive computes the intermediate session key from the common element.
func (t *transcript) derive(k []byte) {
	sum := sha512.Sum512(append(lvCat([]byte(suite+"_ISK"), t.session, k),
		lvCat(t.ya, t.ada, t.yb, t.adb)...))
	t.intermediate = sum[:]
}

// tag returns a side's proof that it knows the key: a MAC over the data that it sent.
func (t *transcript) tag(share, data []byte) []byte {
	key := sha512.New()
	key.Write([]byte("CPaceMac"))
	key.Write(t.session)
	key.Write(t.intermediate)
	m := hmac.New(sha512.New, key.Sum(nil))
	m.Write(lvCat(share, data))
	return m.Sum(nil)
}

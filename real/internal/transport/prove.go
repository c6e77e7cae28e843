package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
)

// Key is drawn by a listener and travels in its Handle, through the bootstrap's
// encrypted connections. The dialer proves it without showing it, and so
// does the listener: an unknown peer's connection is never taken for a peer's, nor a
// squatter's address. What follows on the connection is plain.
type Key [16]byte

// NewKey draws a key.
func NewKey() (k Key, err error) {
	_, err = rand.Read(k[:])
	return k, err
}

// ErrUnknownPeer: the peer does not know the handle's key.
var ErrUnknownPeer = errors.New("refused: the peer does not know the handle's key")

const nonceSize = 16

func (k *Key) mac(side string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, k[:])
	m.Write([]byte(side))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// Prove runs the connecting side: it answers the listener's nonce, says which of
// a listener's connections this is, and has the listener answer its own nonce.
func (k *Key) Prove(c net.Conn, which byte) error {
	var nonce [nonceSize]byte
	if _, err := io.ReadFull(c, nonce[:]); err != nil {
		return err
	}
	mine := make([]byte, nonceSize, nonceSize+1+sha256.Size)
	if _, err := rand.Read(mine); err != nil {
		return err
	}
	mine = append(mine, which)
	if _, err := c.Write(append(mine, k.mac("connect", nonce[:], mine)...)); err != nil {
		return err
	}
	var answer [sha256.Size]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	if !hmac.Equal(answer[:], k.mac("listen", mine, nonce[:])) {
		return ErrUnknownPeer
	}
	return nil
}

// Check runs the listening side, which proves nothing before the other has, and
// returns which of its connections this is. It calls known before it answers a right proof.
func (k *Key) Check(c net.Conn, known func()) (which byte, err error) {
	var nonce [nonceSize]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return 0, err
	}
	if _, err := c.Write(nonce[:]); err != nil {
		return 0, err
	}
	var got [nonceSize + 1 + sha256.Size]byte
	if _, err := io.ReadFull(c, got[:]); err != nil {
		return 0, err
	}
	mine, proof := got[:nonceSize+1], got[nonceSize+1:]
	if !hmac.Equal(proof, k.mac("connect", nonce[:], mine)) {
		return 0, ErrUnknownPeer
	}
	known()
	_, err = c.Write(k.mac("listen", mine, nonce[:]))
	return mine[nonceSize], err
}

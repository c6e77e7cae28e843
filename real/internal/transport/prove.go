package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
)

// Key is drawn by a listener and travels in its Handle, through the bootstrap's encrypted connections. Dialer
// and listener prove to each other that they know it, without revealing it: so neither an unknown peer's
// connection nor a false listener on the address is accepted. Later data on the connection is not encrypted.
type Key [16]byte

// NewKey returns a random key.
func NewKey() (k Key, err error) {
	_, err = rand.Read(k[:])
	return k, err
}

// ErrUnknownPeer says that the peer does not know the handle's key.
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

// Prove runs the dialer's side: it answers the listener's nonce, sends which of the listener's connections
// this is, and verifies the answer to its own nonce.
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

// Check runs the listener's side, which proves nothing before the dialer has, and returns which of its
// connections this is. It calls known before it answers a right proof.
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

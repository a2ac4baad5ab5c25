package park

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// Why a requestState is refused. A state that was tampered with and one of
// another principal are the same to whoever has not made them.
var (
	ErrForged       = errors.New("is not one of this server's")
	ErrOtherRequest = errors.New("belongs to another request")
	ErrExpired      = errors.New("has expired")
	ErrUsed         = errors.New("was used already")
)

// A Sealer makes values of requestState that only it can read, each for one
// request of one principal and for a time (2026-07-28, patterns/mrtr, Server
// Requirements). It keeps nothing and is safe for concurrent use.
type Sealer struct {
	aead cipher.AEAD
}

// NewSealer returns a sealer with the given secret, of any length. Sealers with
// one secret open each other's states. An empty key makes a random one: then states
// do not outlive the sealer.
func NewSealer(key []byte) *Sealer {
	secret := sha256.Sum256(key)
	if len(key) == 0 {
		// It never fails: see crypto/rand.
		_, _ = rand.Read(secret[:])
	}
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // invariant: the key has the length of one
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // invariant: the block size is that of AES
	}
	return &Sealer{aead: aead}
}

// MaxState is how long a state may be, in bytes as it travels.
const MaxState = 8192

// stateEncoding has no way to write one state in two ways, apart from line
// breaks.
var stateEncoding = base64.RawURLEncoding.Strict()

// headSize is what stands before the payload: when the state expires, and the
// digest of its request.
const headSize = 8 + sha256.Size

// Seal returns a state that holds payload, for requests that ask for the same as
// req, for the principal of req, and for the given time. A state that would be
// longer than MaxState is an error.
func (s *Sealer) Seal(req *mcp.Request, life time.Duration, payload []byte) (string, error) {
	if life <= 0 {
		return "", errors.New("sealing a state that has expired already")
	}
	plain := make([]byte, 0, headSize+len(payload))
	plain = binary.BigEndian.AppendUint64(plain, uint64(time.Now().Add(life).UnixNano()))
	sum := digest(req)
	plain = append(append(plain, sum[:]...), payload...)
	if n := stateEncoding.EncodedLen(len(plain) + s.aead.Overhead()); n > MaxState {
		return "", fmt.Errorf("a state of %d bytes is over the limit MaxState of %d", n, MaxState)
	}
	return stateEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, bound(req))), nil
}

// Open returns what was sealed in a state that came with req. The error is
// [ErrForged], [ErrOtherRequest] or [ErrExpired].
func (s *Sealer) Open(req *mcp.Request, state string) ([]byte, error) {
	payload, _, err := s.open(req, state)
	return payload, err
}

func (s *Sealer) open(req *mcp.Request, state string) (payload []byte, expires time.Time, err error) {
	if len(state) > MaxState {
		return nil, expires, ErrForged
	}
	sealed, err := stateEncoding.DecodeString(state)
	if err != nil || strings.ContainsAny(state, "\r\n") {
		return nil, expires, ErrForged
	}
	plain, err := s.aead.Open(nil, nil, sealed, bound(req))
	if err != nil || len(plain) < headSize {
		return nil, expires, ErrForged
	}
	sum := digest(req)
	if subtle.ConstantTimeCompare(plain[8:headSize], sum[:]) == 0 {
		return nil, expires, ErrOtherRequest
	}
	expires = time.Unix(0, int64(binary.BigEndian.Uint64(plain)))
	if !time.Now().Before(expires) {
		return nil, expires, ErrExpired
	}
	return plain[headSize:], expires, nil
}

// bound returns what a state is bound to besides its request.
func bound(req *mcp.Request) []byte {
	p := &req.Meta.Principal
	// Quoted, so that no name can reach into the next one.
	return strconv.AppendQuote(strconv.AppendQuote([]byte("requestState 1 "), p.Issuer), p.Subject)
}

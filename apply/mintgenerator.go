package apply

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// A Generator says how the value of a key is made. Its text is a name, and a number where that means something: "hex:32". The zero
// Generator makes nothing. Generators can be compared, and are their text in JSON and YAML.
type Generator struct {
	name string
	size int
}

// ParseGenerator reads a Generator; all randomness is that of crypto/rand.
//
//   - bytes:N is N random bytes as they are, hex:N in hex, base64:N in base64 with padding, base64url:N in that of URLs without padding;
//     N is 16 to 4096, 32 when it is left out.
//   - password:N is N letters and digits without those that are taken for one another (0 and O, 1, l and I), with at least one lower
//     letter, one upper letter and one digit; N is 16 to 256, 24 when it is left out.
//   - uuid is a random UUID (version 4).
//   - ed25519 is a private key, and rsa:N one of N bits, which is 2048, 3072 or 4096, and that when it is left out: PEM of PKCS #8. The public key is
//     PEM of PKIX, and gets a key of its own in the Secret, with ".pub" at its end.
//
// The error does not repeat the text, which may be a value that somebody put in the wrong place.
func ParseGenerator(text string) (Generator, error) {
	name, number, stated := strings.Cut(text, ":")
	low, high, size := sizesOf(name)
	switch {
	case high < 0:
		return Generator{}, errors.New("want one of bytes:N, hex:N, base64:N, base64url:N, password:N, uuid, ed25519, rsa:N")
	case high == 0 && stated:
		return Generator{}, fmt.Errorf("%s takes no number", name)
	case !stated:
		return Generator{name, size}, nil
	}
	n, err := strconv.Atoi(number)
	switch {
	case name == generateRSA && (err != nil || n != 2048 && n != 3072 && n != 4096):
		return Generator{}, errors.New("rsa:N takes 2048, 3072 or 4096")
	case err != nil || n < low || n > high || strconv.Itoa(n) != number:
		return Generator{}, fmt.Errorf("%s:N takes a whole number from %d to %d", name, low, high)
	}
	return Generator{name, n}, nil
}

const (
	generateBytes     = "bytes"
	generateHex       = "hex"
	generateBase64    = "base64"
	generateBase64URL = "base64url"
	generatePassword  = "password"
	generateUUID      = "uuid"
	generateEd25519   = "ed25519"
	generateRSA       = "rsa"
)

// sizesOf are the bounds of a generator's number and what it is when it is left out; all 0 when it takes none, negative when there is no
// such generator. 16 bytes are 128 bits, and 16 characters of a password 93: less can be guessed.
func sizesOf(name string) (low, high, size int) {
	switch name {
	case generateBytes, generateHex, generateBase64, generateBase64URL:
		return 16, 4096, 32
	case generatePassword:
		return 16, 256, 24
	case generateRSA:
		return 2048, 4096, 4096
	case generateUUID, generateEd25519:
		return 0, 0, 0
	}
	return -1, -1, -1
}

// String is the text that ParseGenerator reads; "" for the zero Generator.
func (g Generator) String() string {
	if g.size == 0 {
		return g.name
	}
	return g.name + ":" + strconv.Itoa(g.size)
}

// MarshalText is String, for encoding/json and YAML.
func (g Generator) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is ParseGenerator.
func (g *Generator) UnmarshalText(text []byte) (err error) {
	*g, err = ParseGenerator(string(text))
	return err
}

// Generate makes a new value each time. Of a pair of keys it is the private one.
func (g Generator) Generate() ([]byte, error) {
	switch g.name {
	case generateBytes:
		return randomBytes(g.size), nil
	case generateHex:
		return hex.AppendEncode(nil, randomBytes(g.size)), nil
	case generateBase64:
		return base64.StdEncoding.AppendEncode(nil, randomBytes(g.size)), nil
	case generateBase64URL:
		return base64.RawURLEncoding.AppendEncode(nil, randomBytes(g.size)), nil
	case generatePassword:
		return password(g.size)
	case generateUUID:
		id, err := uuid.NewRandom()
		return []byte(id.String()), err
	case generateEd25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return privatePEM(private)
	case generateRSA:
		private, err := rsa.GenerateKey(rand.Reader, g.size)
		if err != nil {
			return nil, err
		}
		return privatePEM(private)
	}
	return nil, errors.New("a Generator that ParseGenerator did not make makes nothing")
}

// makesPair says that the value has a public part, which gets a key of its own.
func (g Generator) makesPair() bool { return g.name == generateEd25519 || g.name == generateRSA }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails: the program ends instead
	return b
}

const (
	passwordLower  = "abcdefghijkmnopqrstuvwxyz"
	passwordUpper  = "ABCDEFGHJKLMNPQRSTUVWXYZ"
	passwordDigits = "23456789"
)

// password draws until every class of characters is there, so that each password that has them is equally likely.
func password(n int) ([]byte, error) {
	const alphabet = passwordLower + passwordUpper + passwordDigits
	for {
		b := make([]byte, n)
		for i := range b {
			x, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
			if err != nil {
				return nil, err
			}
			b[i] = alphabet[x.Int64()]
		}
		s := string(b)
		if strings.ContainsAny(s, passwordLower) && strings.ContainsAny(s, passwordUpper) && strings.ContainsAny(s, passwordDigits) {
			return b, nil
		}
	}
}

func privatePEM(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// publicOf is the public key of a private one, both as PEM. Its errors quote nothing of the value.
func publicOf(private []byte) ([]byte, error) {
	block, _ := pem.Decode(private)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errNoPrivateKey
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errNoPrivateKey
	}
	var public any
	switch key := key.(type) {
	case ed25519.PrivateKey:
		public = key.Public()
	case *rsa.PrivateKey:
		public = key.Public()
	default:
		return nil, errNoPrivateKey
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

var errNoPrivateKey = errors.New("the value is no PEM of a PKCS #8 key of Ed25519 or RSA")

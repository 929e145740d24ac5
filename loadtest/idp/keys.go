package idp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Signature algorithms of access and ID tokens.
const (
	ES256 = "ES256"
	RS256 = "RS256"
)

var b64 = base64.RawURLEncoding

// keys sign and verify tokens. Access and ID tokens have public signatures;
// refresh tokens and cookies are for the server's own eyes and take HMAC, as
// in Keycloak.
type keys struct {
	sign   func(digest []byte) ([]byte, error)
	verify func(digest, signature []byte) bool
	// header is that of publicly signed tokens, own of the others, encoded.
	header, own string
	jwks        []byte
	secret      [64]byte
}

func newKeys(algorithm string) (*keys, error) {
	k := new(keys)
	if _, err := rand.Read(k.secret[:]); err != nil {
		return nil, fmt.Errorf("make the secret of refresh tokens: %w", err)
	}
	var public map[string]string
	var err error
	switch algorithm {
	case "", ES256:
		algorithm = ES256
		public, err = k.useECDSA()
	case RS256:
		public, err = k.useRSA()
	default:
		return nil, fmt.Errorf("signature algorithm %q: use %s or %s", algorithm, ES256, RS256)
	}
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", algorithm, err)
	}
	material, err := json.Marshal(public)
	if err != nil {
		return nil, fmt.Errorf("write the public key: %w", err)
	}
	sum := sha256.Sum256(material)
	kid := b64.EncodeToString(sum[:])
	public["kid"], public["alg"], public["use"] = kid, algorithm, "sig"
	if k.jwks, err = json.Marshal(map[string]any{"keys": []any{public}}); err != nil {
		return nil, fmt.Errorf("write the key set: %w", err)
	}
	k.header = header(algorithm, kid)
	sum = sha256.Sum256(k.secret[:])
	k.own = header("HS512", b64.EncodeToString(sum[:12]))
	return k, nil
}

func header(algorithm, kid string) string {
	return b64.EncodeToString(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT","kid":%q}`, algorithm, kid)) + "."
}

func (k *keys) useECDSA() (map[string]string, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := private.PublicKey.Bytes() // 4, then x and y of 32 bytes each
	if err != nil {
		return nil, err
	}
	// RFC 7518, 3.4: a signature is r and s as 32 bytes each.
	k.sign = func(digest []byte) ([]byte, error) {
		r, s, err := ecdsa.Sign(rand.Reader, private, digest)
		if err != nil {
			return nil, err
		}
		out := make([]byte, 64)
		r.FillBytes(out[:32])
		s.FillBytes(out[32:])
		return out, nil
	}
	k.verify = func(digest, signature []byte) bool {
		if len(signature) != 64 {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		return ecdsa.Verify(&private.PublicKey, digest, r, s)
	}
	return map[string]string{
		"kty": "EC", "crv": "P-256", "x": b64.EncodeToString(point[1:33]), "y": b64.EncodeToString(point[33:]),
	}, nil
}

func (k *keys) useRSA() (map[string]string, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	k.sign = func(digest []byte) ([]byte, error) {
		return rsa.SignPKCS1v15(nil, private, crypto.SHA256, digest)
	}
	k.verify = func(digest, signature []byte) bool {
		return rsa.VerifyPKCS1v15(&private.PublicKey, crypto.SHA256, digest, signature) == nil
	}
	return map[string]string{
		"kty": "RSA", "n": b64.EncodeToString(private.N.Bytes()),
		"e": b64.EncodeToString(big.NewInt(int64(private.E)).Bytes()),
	}, nil
}

// signPublic makes a token that anybody can verify with the JWKS.
func (k *keys) signPublic(c *claims) (string, error) {
	text, err := encode(k.header, c)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(text)
	signature, err := k.sign(digest[:])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return string(b64.AppendEncode(append(text, '.'), signature)), nil
}

// signOwn makes a token that only this server can verify.
func (k *keys) signOwn(payload any) (string, error) {
	text, err := encode(k.own, payload)
	if err != nil {
		return "", err
	}
	return string(b64.AppendEncode(append(text, '.'), k.mac(text))), nil
}

func encode(header string, payload any) ([]byte, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("write a token: %w", err)
	}
	out := make([]byte, 0, len(header)+b64.EncodedLen(len(body))+1+b64.EncodedLen(256))
	return b64.AppendEncode(append(out, header...), body), nil
}

// mac authenticates text that the server gives away and gets back.
func (k *keys) mac(text []byte) []byte {
	h := hmac.New(sha512.New, k.secret[:])
	h.Write(text)
	return h.Sum(nil)
}

var errToken = errors.New("not a token of this server")

// verifyPublic reads a token made by signPublic.
func (k *keys) verifyPublic(text string) (*claims, error) {
	c := new(claims)
	return c, decode(text, k.header, c, func(signed, signature []byte) bool {
		digest := sha256.Sum256(signed)
		return k.verify(digest[:], signature)
	})
}

// verifyOwn reads a token made by signOwn into payload.
func (k *keys) verifyOwn(text string, payload any) error {
	return decode(text, k.own, payload, func(signed, signature []byte) bool {
		return hmac.Equal(k.mac(signed), signature)
	})
}

// decode takes a token apart. The header must be the very one that this server
// writes, so no other algorithm can be asked for.
func decode(text, header string, payload any, ok func(signed, signature []byte) bool) error {
	rest, found := strings.CutPrefix(text, header)
	if !found {
		return errToken
	}
	body, last, found := strings.Cut(rest, ".")
	if !found {
		return errToken
	}
	signature, err := b64.DecodeString(last)
	// Decoding overlooks line breaks and spare bits, so that more than one
	// text would be the same token.
	if err != nil || b64.EncodeToString(signature) != last || !ok([]byte(text[:len(header)+len(body)]), signature) {
		return errToken
	}
	raw, err := b64.DecodeString(body)
	if err != nil || json.Unmarshal(raw, payload) != nil {
		return errToken
	}
	return nil
}

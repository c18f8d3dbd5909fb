package fleettest

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	bigendian "encoding/binary"
	"fmt"
	"time"
)

// TOTPCode is the code that an authenticator program shows for a secret at a time, by RFC 6238. It is written apart from
// the program's own function, so that a mistake in that one shows.
func TOTPCode(secret string, at time.Time) (string, error) {
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		return "", fmt.Errorf("the secret is not base32: %w", err)
	}

	var counter [8]byte
	bigendian.BigEndian.PutUint64(counter[:], uint64(at.Unix())/30)
	h := hmac.New(sha1.New, key)
	h.Write(counter[:])
	sum := h.Sum(nil)
	return fmt.Sprintf("%06d", (bigendian.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff)%1_000_000), nil
}

package enrol

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
)

// AskKeys gets the keys of an installation for a new server. It sends nothing before the server has proven, by TLS 1.3,
// that it has a certificate of the authority that is pinned in the token.
func AskKeys(ctx context.Context, server string, t Token) (keys ServerKeys, err error) {
	base, err := serverURL(server)
	if err != nil {
		return keys, err
	}
	req, open, err := NewServerJoin(t)
	if err != nil {
		return keys, err
	}

	var authority *x509.Certificate
	var answer ServerJoinAnswer
	err = post(ctx, pinned(t.Pin, &authority), base, ServerJoinPath, req, "", &answer)
	if err == nil {
		keys, err = open(answer)
	}
	if err != nil {
		return keys, fmt.Errorf("cannot get the keys of %s: %w", base.Host, err)
	}
	return keys, nil
}

// NewServerJoin makes a request with a token, and what opens its answer. The token is not in the request.
func NewServerJoin(t Token) (req ServerJoinRequest, open func(ServerJoinAnswer) (ServerKeys, error), err error) {
	mine, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return req, nil, fmt.Errorf("cannot create a key: %w", err)
	}
	key, public := newJoinKey(t), mine.PublicKey().Bytes()
	req = ServerJoinRequest{Token: t.ID, Public: public, Proof: key.proof(t.ID, public)}
	return req, func(a ServerJoinAnswer) (keys ServerKeys, err error) {
		text, err := key.open(t.ID, mine, a.Public, a.Sealed)
		if err != nil {
			return keys, err
		}
		if err := json.Unmarshal(text, &keys); err != nil {
			return keys, fmt.Errorf("cannot read the keys in the answer: %w", err)
		}
		if keys.Installation == "" || len(keys.Authority) == 0 || len(keys.Signing) == 0 {
			return keys, errors.New("the keys in the answer are not complete")
		}
		return keys, nil
	}, nil
}

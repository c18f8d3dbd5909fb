package enrol

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"runtime"
)

// certificateBlock is the type of the PEM block of a certificate.
const certificateBlock = "CERTIFICATE"

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})
}

// encodePair writes a key and its certificate as PEM.
func encodePair(der []byte, key *ecdsa.PrivateKey) ([]byte, error) {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}), certPEM(der)...), nil
}

// parsePair reads a key and its certificate. It rejects a text that has other blocks too.
func parsePair(b []byte) (cert *x509.Certificate, key *ecdsa.PrivateKey, err error) {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PRIVATE KEY":
			k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, nil, err
			}
			var ok bool
			if key, ok = k.(*ecdsa.PrivateKey); !ok {
				return nil, nil, errors.New("the key is not an ECDSA key")
			}
		case certificateBlock:
			if cert, err = x509.ParseCertificate(block.Bytes); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, fmt.Errorf("the file has a block of the unknown type %q", block.Type)
		}
	}

	if cert == nil || key == nil {
		return nil, nil, errors.New("key or certificate is missing")
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, errors.New("key and certificate do not belong together")
	}

	return cert, key, nil
}

// readPrivate reads a file that only its owner may read.
func readPrivate(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	return os.ReadFile(path)
}

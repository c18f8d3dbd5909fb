package keyprogram

import (
	"crypto"
	"io"
)

// MaxLine is the length of the longest line.
const MaxLine = maxLine

// ReadLines is readLines.
func ReadLines(out io.Reader, take func(string)) error { return readLines(out, take) }

// Parse is parse.
func Parse(line string) ([]byte, error) { return parse(line) }

// PublicKey is publicKey.
func PublicKey(name string, der []byte) (crypto.PublicKey, error) { return publicKey(name, der) }

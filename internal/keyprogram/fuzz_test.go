package keyprogram_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gozzard/gozzard/internal/keyprogram"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzAnswers: any output of a signer is lines of limited length and then an error, and each line is an answer or an
// error. How the bytes arrive matters only for lines that arrive together.
func FuzzAnswers(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte("ok\n"))
	z.Add([]byte("ok " + base64.StdEncoding.EncodeToString(edDER(f)) + "\r\n"))
	z.Add([]byte("error the token has no key signing-1\n"))
	z.Add([]byte("ok QUJD\nok QUJE\nok"))
	z.Add([]byte("ok =\x00\n\n \nOK\n"))
	z.Add([]byte("ok " + strings.Repeat("A", keyprogram.MaxLine) + "\n"))

	z.Fuzz(func(t *testing.T, out []byte) {
		slow := linesOf(t, iotest.OneByteReader(bytes.NewReader(out)))
		fast := linesOf(t, bytes.NewReader(out))
		if len(fast) > len(slow) || len(slow) > bytes.Count(out, []byte("\n")) {
			t.Fatalf("%d lines at once, %d by bytes, of %q", len(fast), len(slow), out)
		}

		for _, line := range slow {
			answer, err := keyprogram.Parse(line)
			if err != nil {
				if answer != nil || len(err.Error()) > 2000 || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%q: %q, %v", line, answer, err)
				}
				continue
			}
			if len(answer) > keyprogram.MaxLine {
				t.Fatalf("an answer of %d bytes", len(answer))
			}
			if key, err := keyprogram.PublicKey("signing-1", answer); (key == nil) == (err == nil) {
				t.Fatalf("%v, %v", key, err)
			}
		}
	})
}

// linesOf reads lines until the error that must come.
func linesOf(t *testing.T, out interface{ Read([]byte) (int, error) }) (lines []string) {
	t.Helper()
	err := keyprogram.ReadLines(out, func(line string) {
		if len(line) > keyprogram.MaxLine || strings.Contains(line, "\n") {
			t.Fatalf("a line of %d bytes: %.100q", len(line), line)
		}
		lines = append(lines, line)
	})
	if err == nil {
		t.Fatal("the output has no end")
	}
	return lines
}

// edDER is a public key as the protocol has it.
func edDER(t testing.TB) []byte {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

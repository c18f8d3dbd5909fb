//go:build unix

package keyprogram_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/keyprogram"
	"github.com/gozzard/gozzard/internal/signing"
)

// signer is a script that stands for a signer. It greets, and then runs body for each request, which is in $line. It
// notes each of its runs.
type signer struct{ runs, script string }

func newSigner(t *testing.T, body string) *signer {
	t.Helper()
	dir := t.TempDir()
	s := &signer{runs: filepath.Join(dir, "runs"), script: filepath.Join(dir, "signer.sh")}
	text := "echo run >>" + s.runs + "\nread line; echo ok\nwhile read line; do\n" + body + "\ndone\n"
	if err := os.WriteFile(s.script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// count is how often it was started.
func (s *signer) count(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(s.runs)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "run")
}

// start starts it. A signer that hangs is given up after a short time.
func (s *signer) start(t *testing.T, patience time.Duration) *keyprogram.Program {
	t.Helper()
	p, err := keyprogram.Start(keyprogram.Options{Command: []string{"/bin/sh", s.script}, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestAnswers: a signer that keeps to the protocol is asked by several callers, and runs once.
func TestAnswers(t *testing.T) {
	der := edDER(t)
	s := newSigner(t, `case "$line" in
"public signing-1") echo "ok `+base64.StdEncoding.EncodeToString(der)+`";;
"sign signing-1 ed25519 "*) echo "ok ${line##* }";;
*) echo "error no such key";;
esac`)
	p := s.start(t, time.Minute)

	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := []byte("text " + strconv.Itoa(i))
			if got, err := p.Sign("signing-1", "ed25519", text); err != nil || string(got) != string(text) {
				t.Errorf("signature of %q: %q, %v", text, got, err)
			}
		})
	}
	wg.Wait()

	key, err := p.Public("signing-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := x509.MarshalPKIXPublicKey(key); err != nil || string(got) != string(der) {
		t.Errorf("public key: %x, %v", got, err)
	}
	if _, err := p.Public("signing-2"); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("an unknown key: %v", err)
	}
	if n := s.count(t); n != 1 {
		t.Errorf("the signer was started %d times", n)
	}
}

// TestHostileAnswers: whatever a signer writes, a request ends with an error, and the signer is started again where its
// output is no longer that of the protocol.
func TestHostileAnswers(t *testing.T) {
	long := strconv.Itoa(4 * keyprogram.MaxLine)
	for _, tt := range []struct {
		name, body, want string
		runs             int // starts for one request
	}{
		{"an error", `echo "error the token is locked"`, "the token is locked", 1},
		{"a huge error", `echo "error $(head -c 30000 /dev/zero | tr '\\0' x)"`, "the signer says", 1},
		{"another word", `echo "yes"`, "not with ok or error", 1},
		{"an empty line", `echo`, "not with ok or error", 1},
		{"no base64", `echo "ok !!!"`, "not in base64", 1},
		{"cut base64", `echo "ok QUJDR"`, "not in base64", 1},
		{"no public key", `echo "ok QUJD"`, "not a public key", 1},
		{"nothing", `echo "ok"`, "not a public key", 1},
		{"a line that is too long", `head -c ` + long + ` /dev/zero | tr '\\0' A; echo`, "a line of more than", 2},
		{"bytes without an end", `while :; do printf AAAAAAAA; done`, "a line of more than", 2},
		{"lines without an end", `exec yes ok`, "more than one line", 2},
		{"no newline at its end", `printf "ok QUJD"; exit 0`, "in the middle of a line", 2},
		{"two lines", `printf "ok QUJD\nok QUJD\n"`, "more than one line", 2},
		{"its end", `exit 3`, "has ended", 2},
		{"a signal", `kill -9 $$`, "has ended", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSigner(t, tt.body)
			p := s.start(t, time.Minute)
			key, err := p.Public("signing-1")
			if err == nil || key != nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
				t.Errorf("%v, %v; want %q", key, err, tt.want)
			}
			if n := s.count(t); n != tt.runs {
				t.Errorf("the signer was started %d times, want %d", n, tt.runs)
			}
		})
	}
}

// TestSignerThatHangs: a signer that does not answer, or leaves its output to another program, is given up: the request
// ends, and nothing waits for the other program.
func TestSignerThatHangs(t *testing.T) {
	for name, body := range map[string]string{
		"no answer":       `exec sleep 600`,
		"a part of one":   `printf "ok QUJD"; exec sleep 600`,
		"another program": `sleep 30 & exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSigner(t, body)
			p := s.start(t, 200*time.Millisecond)
			if _, err := p.Sign("signing-1", "ed25519", []byte("text")); err == nil {
				t.Error("an answer of a signer that hangs")
			}
			if n := s.count(t); n != 2 {
				t.Errorf("the signer was started %d times", n)
			}
		})
	}
}

// TestUnaskedLine: a line that a signer writes without a request is not the answer to the next one.
func TestUnaskedLine(t *testing.T) {
	dir := t.TempDir()
	first, later := filepath.Join(dir, "first"), filepath.Join(dir, "later")
	s := newSigner(t, `echo "ok ${line##* }"
if mkdir `+first+` 2>/dev/null; then sleep 0.2; echo "ok Zm9yZ2Vk"; touch `+later+`; fi`)
	p := s.start(t, time.Minute)
	sign := func(text string) {
		t.Helper()
		if got, err := p.Sign("signing-1", "ed25519", []byte(text)); err != nil || string(got) != text {
			t.Errorf("signature of %q: %q, %v", text, got, err)
		}
	}

	sign("one")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(later); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the line was not written")
		}
	}
	time.Sleep(50 * time.Millisecond) // the line is in the pipe: let the reader take it
	sign("two")
	if n := s.count(t); n != 2 {
		t.Errorf("the signer was started %d times", n)
	}
}

// TestNoSigner: a program that is not there, that does not greet, or that was ended has an error.
func TestNoSigner(t *testing.T) {
	if _, err := keyprogram.Start(keyprogram.Options{}); err == nil {
		t.Error("no command")
	}
	for name, command := range map[string][]string{
		"not there": {filepath.Join(t.TempDir(), "missing")}, "ends at once": {"/bin/sh", "-c", "exit 0"},
		"another protocol": {"/bin/sh", "-c", "read line; echo hello; cat"},
		"rejects it":       {"/bin/sh", "-c", "read line; echo error version 2 only; cat"},
	} {
		p, err := keyprogram.Start(keyprogram.Options{Command: command})
		if err == nil {
			t.Errorf("%s: started", name)
			_ = p.Close()
		}
	}

	p := newSigner(t, `echo "ok QUJD"`).start(t, time.Minute)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sign("signing-1", "ed25519", nil); err == nil || !strings.Contains(err.Error(), "was ended") {
		t.Errorf("after its end: %v", err)
	}
}

// TestWrongSignature: a signature of another key, or none, is found before it reaches an agent.
func TestWrongSignature(t *testing.T) {
	der := base64.StdEncoding.EncodeToString(edDER(t))
	other := base64.StdEncoding.EncodeToString(make([]byte, ed25519.SignatureSize))
	for name, tt := range map[string]struct{ public, signature, want string }{
		"another key":   {der, other, "not of key signing-1"},
		"no signature":  {der, "", "not of key signing-1"},
		"no public key": {"QUJD", other, "not a public key"},
	} {
		s := newSigner(t, `case "$line" in public*) echo "ok `+tt.public+`";; *) echo "ok `+tt.signature+`";; esac`)
		signer, err := signing.NewSigner(signing.SignerOptions{Dir: t.TempDir(), Outside: s.start(t, time.Minute),
			MakeOutside: true})
		if err == nil {
			_, err = signer.Checkpoint(gozzard.AuditHead{Seq: 1})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// The limits of a file with headers.
const (
	maxHeaders     = 32
	maxHeaderBytes = 64 << 10 // of the file
)

// readHeaders reads the headers of a file that only its owner can read. Without a name there are none.
func readHeaders(path string) (http.Header, error) {
	if path == "" {
		return nil, nil
	}
	if err := atomicfile.Check(path); err != nil {
		return nil, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxHeaderBytes {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", path, maxHeaderBytes)
	}

	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h, err := ParseHeaders(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// ownHeaders are those that a request makes itself, or that decide how it is sent and answered.
var ownHeaders = []string{"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect",
	"Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent"}

// ParseHeaders reads headers, one "Name: value" in a line. Empty lines and lines that begin with # are skipped. No error has
// a part of a value: it may be a secret.
func ParseHeaders(file []byte) (http.Header, error) {
	h := http.Header{}
	n, found := 0, 0
	for text := range bytes.Lines(file) {
		n++
		line := strings.TrimSpace(string(text))
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !isToken(name) || value == "" || strings.ContainsFunc(value, isControl) {
			return nil, fmt.Errorf("line %d is not a header such as \"Authorization: Bearer TOKEN\"", n)
		}
		if name = textproto.CanonicalMIMEHeaderKey(name); slices.Contains(ownHeaders, name) {
			return nil, fmt.Errorf("line %d: the header %s belongs to the request itself", n, name)
		}
		h.Add(name, value)
		if found++; found > maxHeaders {
			return nil, fmt.Errorf("there are more than %d headers", maxHeaders)
		}
	}
	if found == 0 {
		return nil, errors.New("the file has no header such as \"Authorization: Bearer TOKEN\"")
	}
	return h, nil
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

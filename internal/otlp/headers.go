package otlp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
)

// maxHeaders is how many headers a file may have.
const maxHeaders = 32

// ParseHeaders reads headers, one "Name: value" in a line. Empty lines and lines that begin with # are skipped. No error has
// a part of a value: it may be a secret.
func ParseHeaders(file []byte) (http.Header, error) {
	h := http.Header{}
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !isToken(name) || value == "" || strings.ContainsFunc(value, isControl) {
			return nil, fmt.Errorf("line %d is not a header such as \"Authorization: Bearer TOKEN\"", n)
		}
		switch name = textproto.CanonicalMIMEHeaderKey(name); name {
		case "Content-Type", "Content-Encoding", "Content-Length", "Host", "Transfer-Encoding", "Connection":
			return nil, fmt.Errorf("line %d: the header %s belongs to the request itself", n, name)
		}
		if h.Add(name, value); len(h) > maxHeaders {
			return nil, fmt.Errorf("there are more than %d headers", maxHeaders)
		}
	}
	if len(h) == 0 {
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

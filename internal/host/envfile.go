package host

import (
	"fmt"
	"strings"
)

const envFileBytes = 64 << 10

// parseEnvFile reads lines NAME=VALUE. It ignores empty lines, lines that begin with #, and the word export before a name. A
// value may be in quotes; nothing is replaced inside. Errors do not show values, because they may be secrets.
func parseEnvFile(text []byte, to map[string]string) error {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		switch {
		case !ok || !isVariable(name):
			return fmt.Errorf("line %d is not NAME=VALUE", n)
		case strings.HasPrefix(name, "GOZZARD_"):
			return fmt.Errorf("line %d: names that begin with GOZZARD_ are set by Gozzard", n)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("line %d has a NUL character", n)
		}
		to[name] = unquote(strings.TrimSpace(value))
	}
	return nil
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// isVariable reports whether a text can be the name of a variable.
func isVariable(s string) bool {
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', i > 0 && r >= '0' && r <= '9':
		default:
			return false
		}
	}
	return s != ""
}

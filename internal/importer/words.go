package importer

import (
	"errors"
	"strings"
)

// posixWords splits a line into words as a POSIX shell without expansions does: quotes and backslashes, nothing else.
func posixWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New("ends with a backslash")
			}
			word.WriteByte(s[i])
			inWord = true
		case '\'', '"':
			n, err := quoted(s[i:], &word)
			if err != nil {
				return nil, err
			}
			i += n - 1
			inWord = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted reads a text in quotes at the start of s, and returns how many bytes it has with them.
func quoted(s string, out *strings.Builder) (int, error) {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return i + 1, nil
		case c == '\\' && quote == '"' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			out.WriteByte(s[i])
		default:
			out.WriteByte(c)
		}
	}
	return 0, errors.New("has a quote without an end")
}

// shellWord writes a word so that a shell reads exactly this word.
func shellWord(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func shellLine(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = shellWord(w)
	}
	return strings.Join(list, " ")
}

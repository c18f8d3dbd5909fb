package strictjson

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// Limits of one document. A value takes 16 bytes of memory, so MaxValues limits the memory that a hostile body can
// use.
const (
	MaxDepth  = 32
	MaxValues = 2_000_000
)

// Document is one JSON text, read strictly: valid UTF-8 without byte order mark, one value, no comments or trailing
// commas, no duplicate names, no lone surrogates. encoding/json accepts the last three and ignores the case of names;
// that can turn a forgotten field into a start.
//
// Its nodes are in the order of the text, and each node knows where its subtree ends. Strings are decoded on demand.
type Document struct {
	src   []byte
	nodes []node
}

// node is one value, or the name of a member (as a string node before its value).
type node struct {
	kind kind
	esc  bool   // a string with escapes
	from uint32 // in src; of a string without its quotes
	to   uint32
	next uint32 // index of the node after this subtree
}

type kind uint8

const (
	kindNull kind = iota + 1
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) String() string {
	return [...]string{"nothing", "null", "false", "true", "a number", "a string", "a list", "an object"}[k]
}

// Parse reads a document. Its errors are *gozzard.Error of kind ErrInvalid and name the line and the cause.
func Parse(src []byte) (*Document, error) {
	s := scanner{src: src}
	if err := s.document(); err != nil {
		return nil, err
	}
	return &Document{src: src, nodes: s.nodes}, nil
}

// ParsePrefix reads the beginning of a body, for its first members. Parse finds the faults of the whole body later.
// The result is nil if the text does not begin with an object.
func ParsePrefix(src []byte) *Document {
	s := scanner{src: src}
	_ = s.document() // the error is the end of the text
	whole := 1
	for whole+1 < len(s.nodes) && s.nodes[whole].next != 0 && s.nodes[whole+1].next != 0 {
		whole = int(s.nodes[whole+1].next)
	}
	if len(s.nodes) > 0 && s.nodes[0].kind == kindObject {
		s.nodes[0].next = uint32(whole) // only complete members count
		return &Document{src: src, nodes: s.nodes}
	}
	return nil
}

type scanner struct {
	src   []byte
	pos   int
	nodes []node
}

// fail makes an error for a place in the text.
func (s *scanner) fail(at int, format string, args ...any) error {
	line := 1 + bytes.Count(s.src[:at], []byte{'\n'})
	column := 1 + utf8.RuneCount(s.src[bytes.LastIndexByte(s.src[:at], '\n')+1:at])
	return gozzard.Errorf(gozzard.ErrInvalid, "body is not strict JSON: line %d, column %d: %s", line, column,
		fmt.Sprintf(format, args...))
}

func (s *scanner) document() error {
	if bytes.HasPrefix(s.src, []byte("\xef\xbb\xbf")) {
		return s.fail(0, "begins with a byte order mark")
	}
	if err := s.blanks(); err != nil {
		return err
	}
	if s.pos == len(s.src) {
		return gozzard.Errorf(gozzard.ErrInvalid, "body is empty: a JSON object is expected")
	}
	if err := s.value(1); err != nil {
		return err
	}
	if err := s.blanks(); err != nil {
		return err
	}
	if s.pos < len(s.src) {
		return s.fail(s.pos, "%s after the end of the document", s.here())
	}

	return nil
}

// here describes the character at the present place.
func (s *scanner) here() string {
	if s.pos >= len(s.src) {
		return "the end of the body"
	}
	r, n := utf8.DecodeRune(s.src[s.pos:])
	if r == utf8.RuneError && n == 1 {
		return fmt.Sprintf("byte 0x%02x, which is not valid UTF-8,", s.src[s.pos])
	}
	return strconv.QuoteRune(r)
}

func (s *scanner) blanks() error {
	for ; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
		case '/', '#':
			return s.fail(s.pos, "comments are not allowed")
		default:
			return nil
		}
	}
	return nil
}

func (s *scanner) add(k kind, from int) (int, error) {
	if len(s.nodes) >= MaxValues {
		return 0, s.fail(from, "more than %d values", MaxValues)
	}
	s.nodes = append(s.nodes, node{kind: k, from: uint32(from)})
	return len(s.nodes) - 1, nil
}

// end closes a subtree.
func (s *scanner) end(at, to int) {
	s.nodes[at].to = uint32(to)
	s.nodes[at].next = uint32(len(s.nodes))
}

func (s *scanner) value(depth int) error {
	if s.pos >= len(s.src) {
		return s.fail(s.pos, "the body ends where a value is expected")
	}
	if depth > MaxDepth {
		return s.fail(s.pos, "nested deeper than %d", MaxDepth)
	}

	switch c := s.src[s.pos]; {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		return s.str()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 'n':
		return s.word("null", kindNull)
	case c == 't':
		return s.word("true", kindTrue)
	case c == 'f':
		return s.word("false", kindFalse)
	}

	return s.fail(s.pos, "%s where a value is expected", s.here())
}

func (s *scanner) word(w string, k kind) error {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(w)) {
		return s.fail(s.pos, "%s where a value is expected", s.here())
	}
	at, err := s.add(k, s.pos)
	if err != nil {
		return err
	}
	s.pos += len(w)
	s.end(at, s.pos)
	return nil
}

func (s *scanner) array(depth int) error {
	at, err := s.add(kindArray, s.pos)
	if err != nil {
		return err
	}

	s.pos++

	for first := true; ; first = false {
		if err := s.blanks(); err != nil {
			return err
		}
		if s.pos < len(s.src) && s.src[s.pos] == ']' && first {
			break
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		more, err := s.comma(']')
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}

	s.pos++
	s.end(at, s.pos)
	return nil
}

// comma reads a comma. Without one, the closing bracket must follow.
func (s *scanner) comma(closing byte) (more bool, err error) {
	if err := s.blanks(); err != nil {
		return false, err
	}
	if s.pos >= len(s.src) {
		return false, s.fail(s.pos, "the body ends before %q", closing)
	}

	switch s.src[s.pos] {
	case closing:
		return false, nil
	case ',':
		at := s.pos
		s.pos++
		if err := s.blanks(); err != nil {
			return false, err
		}
		if s.pos < len(s.src) && s.src[s.pos] == closing {
			return false, s.fail(at, "a comma before %q is not allowed", closing)
		}
		return true, nil
	}

	return false, s.fail(s.pos, "%s where a comma or %q is expected", s.here(), closing)
}

func (s *scanner) object(depth int) error {
	at, err := s.add(kindObject, s.pos)
	if err != nil {
		return err
	}

	s.pos++

	for first := true; ; first = false {
		if err := s.blanks(); err != nil {
			return err
		}
		if s.pos < len(s.src) && s.src[s.pos] == '}' && first {
			break
		}
		if err := s.member(depth); err != nil {
			return err
		}
		more, err := s.comma('}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}

	s.pos++
	s.end(at, s.pos)
	return s.unique(at)
}

func (s *scanner) member(depth int) error {
	if s.pos >= len(s.src) || s.src[s.pos] != '"' {
		return s.fail(s.pos, "%s where a name in double quotes is expected", s.here())
	}
	if err := s.str(); err != nil {
		return err
	}
	if err := s.blanks(); err != nil {
		return err
	}
	if s.pos >= len(s.src) || s.src[s.pos] != ':' {
		return s.fail(s.pos, "%s where a colon is expected", s.here())
	}

	s.pos++

	if err := s.blanks(); err != nil {
		return err
	}

	return s.value(depth + 1)
}

// unique rejects an object that has a name twice: readers differ in which of the two values counts.
func (s *scanner) unique(at int) error {
	d := Document{src: s.src, nodes: s.nodes}
	const few = 12
	var names [few]string
	var many map[string]bool
	n := 0
	for i := at + 1; i < len(s.nodes); i = int(s.nodes[i+1].next) {
		name := d.text(i)
		dup := false
		switch {
		case many != nil:
			dup = many[name]
			many[name] = true
		case n < few:
			for _, have := range names[:n] {
				dup = dup || have == name
			}
			names[n] = name
		default:
			many = make(map[string]bool, 2*few)
			for _, have := range names {
				many[have] = true
			}
			dup = many[name]
			many[name] = true
		}
		if dup {
			return s.fail(int(s.nodes[i].from)-1, "duplicate key %s", Quote(name))
		}
		n++
	}

	return nil
}

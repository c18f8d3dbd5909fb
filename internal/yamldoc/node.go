package yamldoc

import (
	"fmt"
	"strconv"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds. A plain text can be a number or a truth value: the caller knows what is expected, and uses Int or Bool.
const (
	Null   Kind = iota // no value, ~ or null
	Plain              // a text without quotes
	Quoted             // a text in quotes or a literal block
	List
	Mapping
)

func (k Kind) String() string {
	switch k {
	case Plain, Quoted:
		return "a text"
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	}
	return "nothing"
}

// Node is a value. Its texts may share memory with the whole file, so callers clone what they keep.
type Node struct {
	Kind Kind
	Line int32  // counted from 1
	Key  string // its key, if it is in a mapping
	Text string
	Kids []Node // the values of a list or mapping
}

// Bool reads true or false. ok is false when the value is neither.
func (n *Node) Bool() (value, ok bool) {
	if n.Kind != Plain {
		return false, false
	}
	switch n.Text {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

// Int reads a whole number in decimal without plus sign and leading zeros: all YAML and JSON readers agree on those. It
// returns false when the value is anything else.
func (n *Node) Int() (int, bool) {
	if n.Kind != Plain {
		return 0, false
	}
	i, err := strconv.Atoi(n.Text)
	return i, err == nil && strconv.Itoa(i) == n.Text
}

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if n.Kind == Mapping {
		for i := range n.Kids {
			if n.Kids[i].Key == key {
				return &n.Kids[i]
			}
		}
	}
	return nil
}

// Error says in which line and why a file cannot be read.
type Error struct {
	Line int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

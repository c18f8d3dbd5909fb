package yamldoc

import (
	"fmt"
	"strconv"
)

// Kind is what a value is.
type Kind uint8

// The kinds. What a plain text means, such as a number, is for those who know what must stand there.
const (
	Null Kind = iota // nothing, ~ or null
	Plain
	Quoted // with quotes or as a literal block: a text whatever it looks like
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

// Node is a value. Texts are parts of the file where they can be: clone what is kept.
type Node struct {
	Kind Kind
	Line int32  // from 1
	Key  string // its key in the mapping that it stands in
	Text string
	Kids []Node // of a list or mapping
}

// Bool reads a truth.
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

// Int reads a whole number written in decimal without plus or leading zeros: what all readers of YAML and JSON
// agree on.
func (n *Node) Int() (int, bool) {
	if n.Kind != Plain {
		return 0, false
	}
	i, err := strconv.Atoi(n.Text)
	return i, err == nil && strconv.Itoa(i) == n.Text
}

// Get is the value of a key, nil when there is none.
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

// Error is where and why a file cannot be read.
type Error struct {
	Line int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Deviation is a part of an answer that has another form than documented.
type Deviation struct {
	Where string `json:"where"` // path of keys
	Got   string `json:"got"`
	Want  string `json:"want"`
}

// missing is what a deviation got if the answer does not have a key.
const missing = "missing"

// A shape is the form of a JSON value, itself in JSON:
//
//	"int"              a type: int, number, string, bool, null, object, array or any
//	"int=0|string"     alternatives; = != > compare with a value, ^ with the beginning of a text
//	{"a": …, "b?": …}  an object with these keys; a key with ? may be missing; * stands for all other keys
//	[…]                an array, each element of that shape
//	{"$some": …}       an array with at least one element
//	{"$json": …}       a text that is JSON of that shape
//	"@name"            a shape of the suite with that name
type checker struct {
	shapes map[string]any
	found  []Deviation
}

// check compares a value with a shape and notes what differs.
func (c *checker) check(where string, shape, value any) {
	switch s := shape.(type) {
	case nil:
	case string:
		if name, named := strings.CutPrefix(s, "@"); named {
			of, known := c.shapes[name]
			if !known {
				c.note(where, s, value) // a fault of the suite; a test finds it
			}
			c.check(where, of, value)
			return
		}
		c.scalar(where, s, value)
	case []any:
		c.array(where, s[0], value, 0)
	case map[string]any:
		if of, ok := s["$some"]; ok {
			c.array(where, of, value, 1)
		} else if of, ok := s["$json"]; ok {
			c.text(where, of, value)
		} else {
			c.object(where, s, value)
		}
	}
}

func (c *checker) note(where, want string, value any) {
	c.found = append(c.found, Deviation{Where: where, Got: describe(value), Want: want})
}

func (c *checker) scalar(where, spec string, value any) {
	for one := range strings.SplitSeq(spec, "|") {
		if fits(one, value) {
			return
		}
	}
	c.note(where, spec, value)
}

func (c *checker) array(where string, shape, value any, least int) {
	list, ok := value.([]any)
	if !ok {
		c.note(where, "array", value)
		return
	}
	if len(list) < least {
		c.found = append(c.found, Deviation{Where: where, Got: "an empty array", Want: "an element"})
	}
	for i, v := range list {
		c.check(fmt.Sprintf("%s[%d]", where, i), shape, v)
	}
}

func (c *checker) text(where string, shape, value any) {
	text, ok := value.(string)
	if !ok {
		c.note(where, "string with JSON", value)
		return
	}
	var inner any
	if err := json.Unmarshal([]byte(text), &inner); err != nil {
		c.note(where, "string with JSON", value)
		return
	}
	c.check(where, shape, inner)
}

func (c *checker) object(where string, shape map[string]any, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		c.note(where, "object", value)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(shape)) {
		name, optional := strings.CutSuffix(key, "?")
		v, there := object[name]
		switch {
		case key == "*":
		case there:
			c.check(join(where, name), shape[key], v)
		case !optional:
			c.found = append(c.found, Deviation{Where: join(where, name), Got: missing, Want: wanted(shape[key])})
		}
	}
	if every, ok := shape["*"]; ok {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if _, known := shape[key]; !known {
				c.check(join(where, key), every, object[key])
			}
		}
	}
}

func join(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

// wanted is a shape in a word.
func wanted(shape any) string {
	switch s := shape.(type) {
	case string:
		if !strings.HasPrefix(s, "@") {
			return s
		}
	case []any:
		return "array"
	case map[string]any:
		if s["$some"] != nil {
			return "array"
		}
		if s["$json"] != nil {
			return "string with JSON"
		}
		return "object"
	}
	return "any"
}

// fits compares a value with one alternative of a shape.
func fits(spec string, value any) bool {
	kind, op, operand := spec, "", ""
	for _, o := range []string{"!=", "=", ">", "^"} {
		if k, rest, found := strings.Cut(spec, o); found {
			kind, op, operand = k, o, rest
			break
		}
	}
	if kind != "any" && kind != kindOf(value) && (kind != "number" || kindOf(value) != "int") {
		return false
	}

	plain := plainText(value)
	switch op {
	case "=":
		return plain == operand
	case "!=":
		return plain != operand
	case "^":
		return strings.HasPrefix(plain, operand)
	case ">":
		limit, err := strconv.ParseFloat(operand, 64)
		n, ok := value.(float64)
		return err == nil && ok && n > limit
	}
	return true
}

// kindOf is the type of a JSON value.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "int"
		}
	}
	return "number"
}

// plainText is a value without quotes.
func plainText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// describe is a value for people, in few words.
func describe(value any) string {
	const most = 60
	switch kind := kindOf(value); kind {
	case "null", "object", "array":
		return kind
	default:
		text := plainText(value)
		if r := []rune(text); len(r) > most {
			text = string(r[:most]) + "…"
		}
		if kind == "string" {
			text = strconv.Quote(text)
		}
		return kind + " " + text
	}
}

package gozzard

import (
	"fmt"
	"strings"
)

// LabelRule is one condition on the labels of a process. Several rules must all hold.
type LabelRule struct {
	Key   string
	Value string // a pattern with * and ?
	Kind  LabelRuleKind
}

// LabelRuleKind says what a LabelRule compares.
type LabelRuleKind uint8

// The kinds of rules, as ParseLabelRule reads them.
const (
	LabelPresent LabelRuleKind = iota // key: there is a label with this key
	LabelEqual                        // key=value
	LabelOther                        // key!=value: the label is missing, or has another value
	LabelMissing                      // !key
)

// ParseLabelRule reads key=value, key!=value, key or !key. Neither = nor ! can be part of a key.
func ParseLabelRule(s string) (LabelRule, error) {
	var r LabelRule
	key, value, compared := strings.Cut(s, "=")
	switch {
	case compared && strings.HasSuffix(key, "!"):
		r = LabelRule{key[:len(key)-1], value, LabelOther}
	case compared:
		r = LabelRule{key, value, LabelEqual}
	case strings.HasPrefix(s, "!"):
		r = LabelRule{Key: s[1:], Kind: LabelMissing}
	default:
		r = LabelRule{Key: s, Kind: LabelPresent}
	}

	if err := ValidateName(r.Key); err != nil {
		return LabelRule{}, fmt.Errorf("the key of the label: %w", err)
	}
	if len(r.Value) > MaxProcessNameBytes {
		return LabelRule{}, fmt.Errorf("the value of the label has %d bytes, at most %d are allowed", len(r.Value),
			MaxProcessNameBytes)
	}

	return r, nil
}

// Match reports whether a set of labels satisfies the rule.
func (r LabelRule) Match(labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Kind {
	case LabelPresent:
		return has
	case LabelEqual:
		return has && MatchGlob(r.Value, value)
	case LabelOther:
		return !has || !MatchGlob(r.Value, value)
	case LabelMissing:
		return !has
	}
	return false
}

// The labels with which operations on processes of businesses name where a process belongs: the number of its business and
// the names of its set and module when the operation was made.
const (
	LabelBusiness = "business"
	LabelSet      = "set"
	LabelModule   = "module"
)

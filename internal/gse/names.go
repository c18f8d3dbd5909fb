package gse

import (
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/esb"
)

const maxLabels = 64

// readName reads a namespace or name that will be used. Other forms of the same text would be other names that look alike, so only NFC is taken;
// it is never changed on the way.
func readName(v esb.Value) string {
	before := v.Faults().Len()
	s := v.Str()
	if v.Faults().Len() > before {
		return ""
	}
	if err := gozzard.ValidateName(s); err != nil {
		v.Fault("%v", err)
	} else if !norm.NFC.IsNormalString(s) {
		v.Fault("%+q is not in Unicode normal form C", s)
	}
	return s
}

// meta is who is meant.
type meta struct {
	key    gozzard.Key
	labels map[string]string
}

// readMeta reads meta of a call on one process, or of a namespace when withName is false.
func readMeta(v esb.Value, withName bool) meta {
	if !v.Object() {
		return meta{}
	}
	m := meta{key: gozzard.Key{Namespace: readName(v.Get("namespace"))}, labels: readLabels(v.Get("labels"))}
	if withName {
		m.key.Name = readName(v.Get("name"))
	}
	return m
}

// readLabels reads labels. One client sends a number for a value: its text is taken.
func readLabels(v esb.Value) map[string]string {
	labels := map[string]string{}
	n := 0
	v.Members(func(name string, m esb.Value) {
		if n++; n > maxLabels {
			return
		}
		if err := gozzard.ValidateName(name); err != nil {
			m.Fault("the label's name %v", err)
		} else if !norm.NFC.IsNormalString(name) {
			m.Fault("the label's name is not in Unicode normal form C")
		}
		s := m.Scalar()
		switch {
		case len(s) > gozzard.MaxNameBytes:
			m.Fault("has %d bytes, at most %d are allowed", len(s), gozzard.MaxNameBytes)
		case !plain(s):
			m.Fault("%+q has control or direction characters", s)
		case !norm.NFC.IsNormalString(s):
			m.Fault("%+q is not in Unicode normal form C", s)
		}
		labels[name] = s
	})
	if n > maxLabels {
		v.Fault("has %d labels, at most %d are allowed", n, maxLabels)
	}
	return labels
}

// plain reports whether a text shows what it is: no control characters, no line separators, nothing that changes the direction of writing.
func plain(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return false
		}
	}
	return true
}

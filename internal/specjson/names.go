package specjson

import (
	"fmt"

	"golang.org/x/text/unicode/norm"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

const maxLabels = 64

// CheckName checks the name of a label or of a group. It accepts only Unicode normal form C: another form of the same
// text would be another name that looks the same. Names are never changed.
func CheckName(s string) error {
	if err := gozzard.ValidateName(s); err != nil {
		return err
	}
	return checkNormal(s)
}

// CheckProcessName is CheckName for a namespace and for the name of a process, which may have more characters.
func CheckProcessName(s string) error {
	if err := gozzard.ValidateProcessName(s); err != nil {
		return err
	}
	return checkNormal(s)
}

func checkNormal(s string) error {
	if !norm.NFC.IsNormalString(s) {
		return fmt.Errorf("%+q is not in Unicode normal form C", s)
	}
	return nil
}

// ReadLabels reads labels. One client sends numbers as values; they are read as text.
func ReadLabels(v strictjson.Value) map[string]string {
	labels := map[string]string{}
	n := 0
	v.Members(func(name string, m strictjson.Value) {
		if n++; n > maxLabels {
			return
		}
		if err := CheckName(name); err != nil {
			m.Fault("the label's name %v", err)
		}

		s := m.Scalar()
		switch {
		case len(s) > gozzard.MaxProcessNameBytes:
			m.Fault("has %d bytes, at most %d are allowed", len(s), gozzard.MaxProcessNameBytes)
		case !gozzard.IsPlainLine(s):
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

// line reads an optional text of one line.
func line(v strictjson.Value, most int) string {
	s := v.OptStr()
	switch {
	case len(s) > most:
		v.Fault("has %d bytes, at most %d are allowed", len(s), most)
	case !gozzard.IsPlainLine(s):
		v.Fault("%+q has control or direction characters", s)
	}
	return s
}

package strictjson

import (
	"slices"

	"github.com/gozzard/gozzard/internal/suggest"
)

// Only notes every member of an object whose name is not known, with the name that is probably meant.
func (v *Value) Only(known ...string) {
	v.Members(func(name string, m Value) {
		if !slices.Contains(known, name) {
			m.Fault("%s", suggest.Unknown(name, known))
		}
	})
}

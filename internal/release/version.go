package release

import (
	"cmp"
	"fmt"
	"strings"
)

const maxVersion = 64

// Version is a semantic version. It keeps the text as it was written. The build part after a + does not affect the
// order.
type Version struct {
	text string
	core [3]string
	pre  []string // identifiers of a pre-release; none for a release
}

// ParseVersion parses MAJOR.MINOR.PATCH[-PRE][+BUILD], with or without a leading v.
func ParseVersion(s string) (Version, error) {
	bad := fmt.Errorf("%.80q is not a version such as 1.2.3 or 1.2.3-rc.1", s)
	if len(s) > maxVersion {
		return Version{}, bad
	}

	// The build.
	v := Version{text: s}
	rest, build, hasBuild := strings.Cut(strings.TrimPrefix(s, "v"), "+")
	if hasBuild && !identifiers(build, false) {
		return Version{}, bad
	}

	// The pre-release.
	core, pre, hasPre := strings.Cut(rest, "-")
	if hasPre {
		if !identifiers(pre, true) {
			return Version{}, bad
		}
		v.pre = strings.Split(pre, ".")
	}

	// The numbers.
	parts := strings.Split(core, ".")
	if len(parts) != len(v.core) {
		return Version{}, bad
	}

	for i, p := range parts {
		if !number(p) || len(p) > 1 && p[0] == '0' {
			return Version{}, bad
		}
		v.core[i] = p
	}

	return v, nil
}

// String is the version as it was written.
func (v Version) String() string { return v.text }

// Compare returns a number below 0 if v is older than w, above 0 if it is newer, and 0 if they are equal.
func (v Version) Compare(w Version) int {
	for i := range v.core {
		if c := compareNumbers(v.core[i], w.core[i]); c != 0 {
			return c
		}
	}

	if len(v.pre) == 0 || len(w.pre) == 0 { // a release is newer than its pre-releases
		return cmp.Compare(len(w.pre), len(v.pre))
	}

	for i := range min(len(v.pre), len(w.pre)) {
		if c := compareIdentifiers(v.pre[i], w.pre[i]); c != 0 {
			return c
		}
	}

	return cmp.Compare(len(v.pre), len(w.pre))
}

// compareNumbers compares numbers of any length: without leading zeros the longer one is greater.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func compareIdentifiers(a, b string) int {
	switch {
	case number(a) && number(b):
		return compareNumbers(a, b)
	case number(a):
		return -1
	case number(b):
		return 1
	}
	return cmp.Compare(a, b)
}

func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// identifiers reports whether s is a list of identifiers with dots between them. ordered: numbers have no leading
// zeros.
func identifiers(s string, ordered bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" || ordered && number(id) && len(id) > 1 && id[0] == '0' {
			return false
		}
		for _, c := range []byte(id) {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-') {
				return false
			}
		}
	}
	return true
}

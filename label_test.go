package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestLabelRule(t *testing.T) {
	labels := map[string]string{"tier": "front", "地区": "上海", "note": "a=b", "empty": ""}
	for text, want := range map[string]bool{
		"tier=front": true, "tier=fr*": true, "tier=back": false, "tier!=back": true, "tier!=front": false,
		"tier!=f*": false, "tier": true, "none": false, "!none": true, "!tier": false, "none=x": false, "none!=x": true,
		"地区=上?": true, "note=a=b": true, "empty=": true, "empty!=": false, "tier=": false, "none=": false, "tier=*": true,
	} {
		r, err := gozzard.ParseLabelRule(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := r.Match(labels); got != want {
			t.Errorf("%s matches %v, want %v", text, got, want)
		}
	}

	for _, bad := range []string{"", "=", "=x", "!=x", "!", "!!a", "a!", "-a=b", "a*=b", "a\n=b", "!a=b",
		"a=" + strings.Repeat("x", 300)} {
		if r, err := gozzard.ParseLabelRule(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}

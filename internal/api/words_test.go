package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestInLanguageOf(t *testing.T) {
	const text = "this server has no audit"
	for header, chinese := range map[string]bool{"": false, "en": false, "zh-CN": true, "de, zh;q=0.5": true, "en, zh;q=0.5": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Language", header)
		if got := inLanguageOf(r)(text); strings.EqualFold(got, text) == chinese {
			t.Errorf("%q: %q", header, got)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	list := []gozzard.Fault{{Path: "a", Text: "is required"}}
	if got := faultsIn(inLanguageOf(r), list); len(got) != 1 || got[0] != list[0] {
		t.Errorf("%+v", got)
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
	"github.com/gozzard/gozzard/internal/policy"
)

// TestPolicyText: the comments of a policy are Chinese in a Chinese shell, those of a person and the settings stay.
func TestPolicyText(t *testing.T) {
	file := filepath.Join(t.TempDir(), policy.FileName)
	if _, err := policy.Create(file, policy.Choice{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b) + "# ask Ada before you change this\n"

	if got := policyText(nil, text); got != text {
		t.Errorf("in English the policy is\n%s", got)
	}
	chinese := policyText(language.CommandLine(), text)
	if !strings.HasSuffix(chinese, "# ask Ada before you change this\n") {
		t.Errorf("the comment of a person is gone:\n%s", chinese)
	}
	han := regexp.MustCompile(`\p{Han}`)
	for line := range strings.Lines(strings.TrimSuffix(chinese, "# ask Ada before you change this\n")) {
		if at := strings.LastIndex(line, "# "); at >= 0 && !han.MatchString(line[at:]) {
			t.Errorf("%q has no Chinese comment", line)
		}
	}
	was, err := policy.Parse("p", b)
	if err != nil {
		t.Fatal(err)
	}
	is, err := policy.Parse("p", []byte(chinese))
	if err != nil || was.String() != is.String() {
		t.Errorf("in Chinese it is another policy, or none: %v\n%s", err, chinese)
	}
}

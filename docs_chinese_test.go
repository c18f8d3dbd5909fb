package gozzard_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

var (
	fenced  = regexp.MustCompile("(?ms)^[ \t]*```([a-z]*)\n(.*?)^[ \t]*```[ \t]*$")
	comment = regexp.MustCompile(`(?m)[ \t]*(^|[ \t])#.*$`)
)

// TestChinesePages: every page is there in Chinese. It has the headings, tables and blocks of its English page, in the same order. In the blocks only
// the comments are in Chinese, so a test that runs the commands of one page has run those of the other.
func TestChinesePages(t *testing.T) {
	all := pages(t)
	compared := 0
	for page, text := range all {
		folder, name := filepath.Split(page)
		if folder != "docs/zh/" {
			continue
		}
		english, ok := all["docs/"+name]
		if !ok {
			t.Errorf("%s: there is no such page in English", page)
			continue
		}
		compared++
		if !strings.Contains(text, "\n\n[English](../"+name+")\n") {
			t.Errorf("%s: below its title is no link to the English page", page)
		}
		if got, want := levels(text), levels(english); !slices.Equal(got, want) {
			t.Errorf("%s has headings of the levels %v, the English page %v", page, got, want)
		}
		if got, want := rowsOf(text), rowsOf(english); !slices.Equal(got, want) {
			t.Errorf("%s has tables of %v rows, the English page %v", page, got, want)
		}
		if strings.Contains(text, "<!-- Generated: ") { // from the help of the program, with Chinese in the blocks, too
			continue
		}
		sameBlocks(t, page, fenced.FindAllStringSubmatch(text, -1), fenced.FindAllStringSubmatch(english, -1))
	}
	for page := range all {
		if folder, name := filepath.Split(page); folder == "docs/" && all["docs/zh/"+name] == "" {
			t.Errorf("%s is not there in Chinese: write docs/zh/%s", page, name)
		}
	}
	if compared == 0 {
		t.Error("no page in Chinese was found")
	}
}

// levels are the levels of the headings of a page.
func levels(text string) (all []int) {
	for _, m := range heading.FindAllString(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.Index(m, " "))
	}
	return all
}

// rowsOf counts the rows of each table of a page.
func rowsOf(text string) (all []int) {
	inside := false
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		row := strings.HasPrefix(line, "|")
		if row && !inside {
			all = append(all, 0)
		}
		if row {
			all[len(all)-1]++
		}
		inside = row
	}
	return all
}

// sameBlocks compares the blocks of two pages without their comments. Sentences of the program are in Chinese.
func sameBlocks(t *testing.T, page string, got, want [][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d blocks, the English page %d", page, len(got), len(want))
		return
	}
	chinese := language.CommandLine()
	for i := range got {
		a, b := comment.ReplaceAllString(got[i][2], ""), comment.ReplaceAllString(want[i][2], "")
		if want[i][1] == "" {
			b = printedInChinese(chinese, b)
		}
		if a != b || got[i][1] != want[i][1] {
			t.Errorf("%s: block %d is\n%s\nin the English page\n%s", page, i+1, a, b)
		}
	}
}

// printedBlocks begins the sentences in blocks of what the program prints.
var printedBlocks = []string{"CPU, % of one core: "}

// printedInChinese is what the program prints in a Chinese shell.
func printedInChinese(chinese *language.Catalogue, block string) string {
	lines := strings.SplitAfter(block, "\n")
	for i, line := range lines {
		if slices.ContainsFunc(printedBlocks, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
			lines[i] = chinese.Joined(strings.TrimSuffix(line, "\n")) + "\n"
		}
	}
	return strings.Join(lines, "")
}

package gozzard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

// sameWord is a term for which the command line and the console once had different Chinese words.
type sameWord struct {
	english *regexp.Regexp // the English texts that have the term
	row     string         // of docs/zh/glossary.md
	word    string
	not     []string
}

var sameWords = []sameWord{
	{regexp.MustCompile(`(?i)\bkill`), "**强制结束**（kill）", "强制结束", []string{"强制停止", "强行"}},
	{regexp.MustCompile(`(?i)\brevok`), "**吊销**（revoke）", "吊销", []string{"撤销", "废除"}},
	{regexp.MustCompile(`(?i)second factor`), "**两步验证**（second factor）", "两步验证",
		[]string{"第二因素", "双因素", "二次验证"}},
	{regexp.MustCompile(`(?i)\bepoch\b|"keys.epoch"`), "**第 N 代**（epoch）", "第", []string{"序号", "epoch %d"}},
}

var wordOfConsole = regexp.MustCompile(`^\s*("[^"]+"): \{ en: "((?:[^"\\]|\\.)*)", zh: "((?:[^"\\]|\\.)*)"`)

// TestWordsOfGlossary: the command line and the console have the Chinese words of the glossary.
func TestWordsOfGlossary(t *testing.T) {
	glossary, err := os.ReadFile("docs/zh/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]map[string]string{"command line": chineseOfCommandLine(t), "console": chineseOfConsole(t)}
	for _, w := range sameWords {
		if !strings.Contains(string(glossary), "| "+w.row+" |") {
			t.Errorf("docs/zh/glossary.md has no row %s", w.row)
		}
		for door, all := range texts {
			uses := 0
			for english, chinese := range all {
				if !w.english.MatchString(english) {
					continue
				}
				if strings.Contains(chinese, w.word) {
					uses++
				}
				for _, no := range w.not {
					if strings.Contains(chinese, no) {
						t.Errorf("%s: %q is %q: the glossary has %s", door, english, chinese, w.row)
					}
				}
			}
			if uses == 0 {
				t.Errorf("%s: no text has %s", door, w.word)
			}
		}
	}
}

// chineseOfCommandLine is the Chinese of each English text of the command line.
func chineseOfCommandLine(t *testing.T) map[string]string {
	t.Helper()
	all, chinese := map[string]string{}, language.CommandLine()
	for _, s := range parseAll(t) {
		if s.isTest() {
			continue
		}
		for _, part := range textFolders {
			if s.folder == part.folder {
				for _, text := range messagesIn(s.file, part.calls) {
					if chinese.Has(text) {
						all[text] = chinese.Text(text)
					}
				}
			}
		}
	}
	return all
}

// chineseOfConsole is the Chinese of each key and English text of the console.
func chineseOfConsole(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("web/src/words/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if m := wordOfConsole.FindStringSubmatch(line); m != nil {
				all[m[1]+" "+m[2]] = m[3]
			}
		}
	}
	if len(all) < 500 {
		t.Errorf("only %d texts of the console were found", len(all))
	}
	return all
}

package main

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/language"
)

// TestEveryHelpIsTranslated walks through all commands: every text that the help shows has a Chinese one, also those
// that are put together at run time, and names of values and defaults stay.
func TestEveryHelpIsTranslated(t *testing.T) {
	english, chinese := newRoot(), newRootIn(language.CommandLine())
	english.InitDefaultHelpCmd()
	english.InitDefaultCompletionCmd()
	looked := 0
	check := func(at, before, after string) {
		if looked++; before != "" && !isChinese(after) {
			t.Errorf("%s: %q has no Chinese text", at, before)
		}
	}

	var walk func(en, zh *cobra.Command)
	walk = func(en, zh *cobra.Command) {
		at := en.CommandPath()
		check(at, en.Short, zh.Short)
		check(at, en.Long, zh.Long)
		for _, line := range englishLines(en.Long+"\n"+en.Example, zh.Long+"\n"+zh.Example) {
			t.Errorf("%s: %q is English in the Chinese help", at, line)
		}
		for i, g := range en.Groups() {
			check(at, g.Title, zh.Groups()[i].Title)
		}

		flags := zh.Flags()
		en.Flags().VisitAll(func(f *pflag.Flag) {
			other := flags.Lookup(f.Name)
			check(at+" --"+f.Name, f.Usage, other.Usage)
			name, _ := pflag.UnquoteUsage(f)
			if otherName, _ := pflag.UnquoteUsage(other); name != otherName {
				t.Errorf("%s --%s: the value is called %q and %q", at, f.Name, name, otherName)
			}
		})

		if len(en.Commands()) != len(zh.Commands()) {
			t.Fatalf("%s: %d and %d commands", at, len(en.Commands()), len(zh.Commands()))
		}
		for i, c := range en.Commands() {
			walk(c, zh.Commands()[i])
		}
	}

	walk(english, chinese)
	if looked < 500 {
		t.Errorf("only %d texts were found", looked)
	}
}

// A line of a help has English words if it has three of them in a row. An indented line begins with a command or a name,
// and the words follow after two spaces.
var (
	englishWordsInRow = regexp.MustCompile(`[A-Za-z]+,?( [a-z]+,?){2}`)
	commandInHelp     = regexp.MustCompile(`^\s+.*?(\s{2,}[^ -].*|$)`)
)

// englishLines lists the lines of an English text that are still in the Chinese one.
func englishLines(english, chinese string) (left []string) {
	kept := map[string]bool{}
	for line := range strings.SplitSeq(chinese, "\n") {
		kept[line] = !isChinese(line)
	}
	for line := range strings.SplitSeq(english, "\n") {
		if kept[line] && englishWordsInRow.MatchString(commandInHelp.ReplaceAllString(line, "${1}")) {
			left = append(left, line)
		}
	}
	return left
}

// TestEnglishLines: a text that is Chinese in its beginning only is found, and commands are not taken for words.
func TestEnglishLines(t *testing.T) {
	english := "Write files.\n\nThe command waits for every host.\n  gozzard start web nginx redis\n  gozzard tasks   older tasks than this"
	if left := englishLines(english, strings.Replace(english, "Write files.", "写入文件。", 1)); len(left) != 2 ||
		left[0] != "The command waits for every host." || left[1] != "  gozzard tasks   older tasks than this" {
		t.Errorf("found %q", left)
	}
}

// TestUsageInChinese: no English word of the library is left in the help of any command.
func TestUsageInChinese(t *testing.T) {
	eachCommand(newRootIn(language.CommandLine()), func(cmd *cobra.Command) {
		var b bytes.Buffer
		cmd.SetOut(&b)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimRight(line, "\n")
			if strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "####") || strings.Contains(line, "(default ") {
				t.Errorf("%s: %q is English", cmd.CommandPath(), line)
			}
		}
	})
}

func isChinese(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// TestTotalsInChinese: the line below the table of ps is in the language of the reader. States are not.
func TestTotalsInChinese(t *testing.T) {
	env, rows := testEnv(), []client.Process{aProcess("a", "10.0.0.1", client.StateStopped),
		aProcess("b", "10.0.0.1", client.StateRunning)}
	env.chinese = language.CommandLine()
	for want, got := range map[string]string{
		"2 个进程：1 stopped，1 running": env.totals("process", countStates(rows), false),
		"1 个实例：1 stopped":           env.totals("instance", countStates(rows[:1]), false),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestListsInChinese: a list in an error or a note has the comma of its language.
func TestListsInChinese(t *testing.T) {
	chinese, wrong := language.CommandLine(), outputFlag{format: "xml", known: []string{"table", "json"}}
	var ex *exitError
	if err := wrong.check(); !errors.As(err, &ex) {
		t.Fatal(err)
	}
	if got := errorText(nil, ex.err); got != `-o "xml": use table, json` {
		t.Errorf("English: %s", got)
	}
	if got := errorText(chinese, ex.err); !strings.HasSuffix(got, "table、json") {
		t.Errorf("Chinese: %s", got)
	}

	env := testEnv()
	if got := env.names([]string{"a", "b"}); got != "a, b" {
		t.Errorf("English: %s", got)
	}
	env.chinese = chinese
	if got := env.names([]string{"a", "b"}); got != "a、b" {
		t.Errorf("Chinese: %s", got)
	}
}

// TestChangesInChinese: a list of changes has the commas of its language.
func TestChangesInChinese(t *testing.T) {
	env, plan := testEnv(), client.Preview{Changed: 2, Unchanged: 3}
	if got := env.changeText(&plan); got != "2 changed, 3 unchanged" {
		t.Errorf("English: %q", got)
	}
	env.chinese = language.CommandLine()
	if got := env.changeText(&plan); got != "变更 2，不变 3" {
		t.Errorf("Chinese: %q", got)
	}
}

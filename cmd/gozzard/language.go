package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/language"
)

// Texts of this program are English in the code. The catalogue has the Chinese ones; a nil catalogue leaves them as
// they are. JSON, YAML, headers of tables and states are the same in every language.

// catalogueOf is the catalogue for the language of the environment.
func catalogueOf(getenv func(string) string) *language.Catalogue {
	if language.OfEnvironment(getenv) != language.Chinese {
		return nil
	}
	return language.CommandLine()
}

type catalogueKey struct{}

// withCatalogue hands the catalogue to commands that have no cliEnv.
func withCatalogue(ctx context.Context, chinese *language.Catalogue) context.Context {
	return context.WithValue(ctx, catalogueKey{}, chinese)
}

func catalogueIn(ctx context.Context) *language.Catalogue {
	chinese, _ := ctx.Value(catalogueKey{}).(*language.Catalogue)
	return chinese
}

// textIn is a text in the language of a command.
func textIn(ctx context.Context, format string, args ...any) string {
	return translate(catalogueIn(ctx), format, args...)
}

// placed is a process and its host. It is no text of the catalogue: there it would fit parts of many others.
func placed(chinese *language.Catalogue, process, host string) string {
	if chinese != nil {
		return process + "（" + host + "）"
	}
	return process + " on " + host
}

// finishedIn is a finished text in the language of a command.
func finishedIn(ctx context.Context, text string) string { return catalogueIn(ctx).Message(text) }

// text is a text for people, in their language.
func (env *cliEnv) text(format string, args ...any) string {
	return translate(env.chinese, format, args...)
}

// said is what an agent or the server wrote about a process, in the language of the reader.
func (env *cliEnv) said(text string) string {
	if env.chinese == nil || env.verdicts == nil {
		return text
	}
	return env.verdicts().Joined(text)
}

// joinSaid is several such texts on one line.
func (env *cliEnv) joinSaid(list []string) string {
	said := make([]string, 0, len(list))
	for _, text := range list {
		said = append(said, env.chinese.Message(text))
	}
	if env.chinese == nil {
		return strings.Join(said, "; ")
	}
	return strings.Join(said, "；")
}

// faultText is a fault of a document, in the language of the reader.
func (env *cliEnv) faultText(f gozzard.Fault) string { return faultText(env.chinese, f) }

// say prints a text for people, in their language.
func (env *cliEnv) say(format string, args ...any) error {
	return checkWrite(fmt.Fprint(env.out, env.text(format, args...)))
}

// words is a list of names in a text. Between them is the comma of the language.
type words []string

// String is the list in English.
func (w words) String() string { return strings.Join(w, ", ") }

// names lists names, with the comma that the language has between them.
func (env *cliEnv) names(list []string) string { return env.text("%s", words(list)) }

// clauses lists counts and other short clauses, with the comma that the language has between them.
func (env *cliEnv) clauses(list []string) string {
	if env.chinese == nil {
		return strings.Join(list, ", ")
	}
	return strings.Join(list, "，")
}

// inParentheses is an addition to a text, with the parentheses of the language.
func (env *cliEnv) inParentheses(text string) string {
	if env.chinese == nil {
		return " (" + text + ")"
	}
	return "（" + text + "）"
}

// colon stands between a text and what follows it, in the language.
func (env *cliEnv) colon() string {
	if env.chinese == nil {
		return ": "
	}
	return "："
}

// listError is an error with a list in it. The list is translated, too.
type listError struct {
	error
	format string
	args   []any
}

func (e *listError) Unwrap() error { return e.error }

// withLists is an error that has been made of a format and its arguments.
func withLists(err error, format string, args []any) error {
	if !slices.ContainsFunc(args, func(arg any) bool { _, ok := arg.(words); return ok }) {
		return err
	}
	return &listError{err, format, args}
}

// noteWriter writes finished notes to stderr, in the language of the reader.
type noteWriter struct{ env *cliEnv }

func (w noteWriter) Write(note []byte) (int, error) {
	_, err := io.WriteString(w.env.errs, w.env.chinese.Message(string(note)))
	return len(note), err
}

// translate is a text with its arguments.
func translate(chinese *language.Catalogue, format string, args ...any) string {
	if chinese == nil {
		return fmt.Sprintf(format, args...) // so go vet checks the arguments of all callers
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if list, ok := arg.(words); ok {
			args[i] = strings.Join(list, "、")
		}
	}
	return chinese.Textf(format, args...)
}

// translateHelp puts Chinese texts into the help of a command and of all commands below it.
func translateHelp(root *cobra.Command, chinese *language.Catalogue) {
	if chinese == nil {
		return
	}

	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	usage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error { return writeUsage(cmd, usage, chinese) })

	// Many commands have the same flags, and a text with a list in it is compared with all patterns: look each text up once.
	seen := map[string]string{}
	text := func(english string) string {
		if _, ok := seen[english]; !ok {
			seen[english] = chinese.Message(english)
		}
		return seen[english]
	}
	eachCommand(root, func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		cmd.Short, cmd.Long, cmd.Example = text(cmd.Short), text(cmd.Long), exampleText(chinese, cmd.Example)
		for _, g := range cmd.Groups() {
			g.Title = text(g.Title)
		}
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { f.Usage, f.Deprecated = text(f.Usage), text(f.Deprecated) })
		}
	})
}

// eachCommand calls do for a command and for all commands below it.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		eachCommand(c, do)
	}
}

// exampleText translates the comments of examples. The commands stay.
func exampleText(chinese *language.Catalogue, example string) string {
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		if begin, comment, ok := strings.Cut(line, "# "); ok {
			lines[i] = begin + "# " + chinese.Message(comment)
		}
	}
	return strings.Join(lines, "\n")
}

// usageDefault finds the default value that follows the text of a flag.
var usageDefault = regexp.MustCompile(`(?m)\x20?\(default .*\)$`)

// usageWords are those words in a line of usage that are not typed.
var usageWords = strings.NewReplacer(" [flags]", " [参数]", " [command]", " [命令]")

// writeUsage prints what cobra prints, with its own words in Chinese: they stand alone on their lines.
func writeUsage(cmd *cobra.Command, usage func(*cobra.Command) error, chinese *language.Catalogue) error {
	out := cmd.OutOrStderr()
	var b bytes.Buffer
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	err := usage(cmd)
	cmd.SetOut(out)
	cmd.SetErr(nil)
	if err != nil {
		return err
	}

	text := usageDefault.ReplaceAllStringFunc(b.String(), func(s string) string { return chinese.Message(strings.TrimSpace(s)) })
	for line := range strings.Lines(text) {
		if plain, end := strings.CutSuffix(line, "\n"); end && !strings.HasPrefix(line, " ") {
			line = chinese.Message(plain) + "\n"
		} else if strings.HasPrefix(line, "  gozzard ") {
			line = usageWords.Replace(line)
		}
		if _, err := fmt.Fprint(out, line); err != nil {
			return err
		}
	}
	return nil
}

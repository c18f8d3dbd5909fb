package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// outputFlag is the flag -o of a command.
type outputFlag struct {
	format string
	known  []string // the formats that the command has; the first is the default
}

func (o *outputFlag) register(cmd *cobra.Command, f *pflag.FlagSet, known ...string) {
	o.known = known
	f.StringVarP(&o.format, "output", "o", known[0], "output format: "+strings.Join(known, ", "))
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// check rejects a format that the command does not have.
func (o *outputFlag) check() error {
	if !slices.Contains(o.known, o.format) {
		return usage("-o %q: use %s", o.format, words(o.known))
	}
	return nil
}

// structured reports whether the output is for programs.
func (o *outputFlag) structured() bool { return o.format == "json" || o.format == "yaml" }

// write prints a value as JSON or YAML.
func (o *outputFlag) write(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return failed(fmt.Errorf("cannot encode the output: %w", err))
	}

	out := b.Bytes()
	if o.format == "yaml" {
		var err error
		if out, err = yaml.JSONToYAML(dropControls(out)); err != nil {
			return failed(fmt.Errorf("cannot encode the output: %w", err))
		}
	} else {
		out = escapeControls(out)
	}

	return checkWrite(w.Write(out))
}

// writeLine prints a value as one line of JSON, for values that come one after the other.
func (o *outputFlag) writeLine(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return failed(fmt.Errorf("cannot encode the output: %w", err))
	}
	return checkWrite(w.Write(escapeControls(b.Bytes())))
}

// checkWrite adds the exit code to the error of a write, for example to a closed output or a full disk.
func checkWrite(_ int, err error) error {
	if err != nil {
		return failed(fmt.Errorf("cannot write the output: %w", err))
	}
	return nil
}

// newTable makes a table without borders. Texts from hosts are made printable when they are added.
func newTable(header ...string) *textTable {
	s := &textTable{t: table.NewWriter()}
	s.t.SetStyle(table.StyleDefault)
	st := s.t.Style()
	st.Options = table.OptionsNoBordersAndSeparators
	st.Box.PaddingLeft, st.Box.PaddingRight = "", "  "
	st.Format.Header = text.FormatDefault
	row := make(table.Row, len(header))
	for i, h := range header {
		row[i] = h
	}
	s.t.AppendHeader(row)
	return s
}

// textTable is a table for people.
type textTable struct{ t table.Writer }

func (s *textTable) add(cells ...string) {
	s.addDecorated(func(_ int, cell string) string { return cell }, cells...)
}

// addIndented adds a row with a drawing, such as the branches of a tree, before its first cell.
func (s *textTable) addIndented(drawing string, cells ...string) {
	s.addDecorated(func(i int, cell string) string {
		if i == 0 {
			return drawing + cell
		}
		return cell
	}, cells...)
}

// addDecorated adds a row. decorate gets each cell after it was made printable, and may add colours.
func (s *textTable) addDecorated(decorate func(i int, cell string) string, cells ...string) {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		if c = printable(c); c == "" {
			c = "-"
		}
		row[i] = decorate(i, c)
	}
	s.t.AppendRow(row)
}

// lines are the lines of the table, the header first.
func (s *textTable) lines() (all []string) {
	for line := range strings.Lines(s.t.Render()) {
		all = append(all, strings.TrimRight(line, " \n"))
	}
	return all
}

func (s *textTable) write(w io.Writer) error {
	return checkWrite(io.WriteString(w, strings.Join(s.lines(), "\n")+"\n"))
}

// printable makes a text from elsewhere one harmless line: line breaks become spaces, and characters that control a
// terminal or the direction of writing are removed.
func printable(s string) string { return strings.TrimSpace(harmless(s)) }

// harmless is printable for a line whose blanks at the beginning matter.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
}

// escapeControls escapes the control characters that JSON does not escape, so that no terminal obeys them.
func escapeControls(b []byte) []byte {
	if !bytes.ContainsFunc(b, isHighControl) {
		return b
	}
	var out []byte
	for _, r := range string(b) {
		if isHighControl(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// isHighControl reports whether a character is one of the control characters DEL to U+009F.
func isHighControl(r rune) bool { return r >= 0x7f && r < 0xa0 }

// dropControls removes control characters, raw or escaped, from a JSON text. Line breaks and tabs stay.
func dropControls(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] == '\\' && i+1 < len(b) {
			n := 2
			if b[i+1] == 'u' && i+6 <= len(b) {
				n = 6
				if code, err := strconv.ParseUint(string(b[i+2:i+6]), 16, 16); err == nil &&
					unicode.IsControl(rune(code)) {
					i += n
					continue
				}
			}
			out = append(out, b[i:i+n]...)
			i += n
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if !isHighControl(r) {
			out = append(out, b[i:i+n]...)
		}
		i += n
	}

	return out
}

// age is how long ago a Unix time was. 0 is unknown and gives "".
func age(now time.Time, unix int64) string {
	if unix <= 0 {
		return ""
	}
	return shortDuration(now.Sub(time.Unix(unix, 0)))
}

// shortDuration is a duration in at most two units, such as 2d5h.
func shortDuration(d time.Duration) string {
	d = max(d, 0)
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	}
	return fmt.Sprintf("%ds", seconds)
}

func percent(x float32) string { return strconv.FormatFloat(float64(x), 'f', 1, 32) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

package language

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// texts are the Chinese texts, in the form of gettext's PO files: msgid is the English text, msgstr the Chinese one.
//
//go:embed zh
var texts embed.FS

// Catalogue has texts by their English ones. A nil catalogue has none: everything stays English.
type Catalogue struct {
	exact    map[string]string
	patterns []pattern // by length, the longest first
}

// Messages are the messages that the server makes, for BlueKing's paths.
func Messages() *Catalogue { return load("messages-*.po") }

// CommandLine is everything that the command line prints, messages of the server included.
func CommandLine() *Catalogue { return load("*.po") }

// Verdicts are what agents and the server write into verdicts, events and statuses. The output of a program stands in
// these texts too, so that there are no other patterns that could fit it.
func Verdicts() *Catalogue {
	return load("cli-verdict*.po", "messages-operation.po", "messages-definition.po")
}

// load reads embedded files. They are part of the program, so a malformed one is a mistake of the program.
func load(globs ...string) *Catalogue {
	var names []string
	for _, glob := range globs {
		found, err := fs.Glob(texts, "zh/"+glob)
		if err != nil || len(found) == 0 {
			panic(fmt.Sprintf("language: no texts in zh/%s: %v", glob, err))
		}
		names = append(names, found...)
	}

	c := &Catalogue{exact: map[string]string{}}
	for _, name := range names {
		data, err := texts.ReadFile(name)
		if err != nil {
			panic(fmt.Errorf("language: cannot read %s: %w", name, err))
		}
		entries, err := ReadPO(string(data))
		if err != nil {
			panic(fmt.Errorf("language: cannot read %s: %w", name, err))
		}
		for _, e := range entries {
			c.add(e)
		}
	}

	slices.SortStableFunc(c.patterns, func(a, b pattern) int { return cmp.Compare(b.plain, a.plain) })
	return c
}

// add adds an entry. Finished messages are found by their pattern too.
func (c *Catalogue) add(e Entry) {
	c.exact[e.English] = e.Chinese
	if strings.Contains(e.English, "%") {
		c.patterns = append(c.patterns, newPattern(e))
	}
}

// Text is the Chinese text, or the English one if there is none.
func (c *Catalogue) Text(english string) string {
	if c == nil {
		return english
	}
	if text, ok := c.exact[english]; ok {
		return text
	}
	return english
}

// Has reports whether there is a Chinese text.
func (c *Catalogue) Has(english string) bool {
	if c == nil {
		return false
	}
	_, ok := c.exact[english]
	return ok
}

// Textf is Text with arguments. An argument of the verb t in the Chinese text is looked up too.
func (c *Catalogue) Textf(format string, args ...any) string {
	chinese := c.Text(format)
	if chinese == format {
		return fmt.Sprintf(format, args...)
	}

	args = slices.Clone(args)
	for _, v := range takeApart(chinese).verbs {
		if v.letter != 't' || v.arg >= len(args) {
			continue
		}
		if text, ok := args[v.arg].(string); ok {
			args[v.arg] = c.Message(text)
		}
	}
	return fmt.Sprintf(lookUpVerb.ReplaceAllString(chinese, "${1}v"), args...)
}

// lookUpVerb is the verb t with its index.
var lookUpVerb = regexp.MustCompile(`(%(?:\[\d+\])?)t`)

// maxMessage limits the messages that are looked up by their pattern. Only the output of programs is longer.
const maxMessage = 16 << 10

// maxDepth limits how deep messages are nested: an error has the cause of its cause, one for each layer.
const maxDepth = 8

// Message is the Chinese text of a finished message, whose format and arguments are not known any more. The patterns
// of the formats find the arguments again. A message that fits none stays as it is.
func (c *Catalogue) Message(text string) string { return c.message(text, maxDepth) }

// message is Message for an argument of an argument, as deep as depth says.
func (c *Catalogue) message(text string, depth int) string {
	if c == nil || depth == 0 || len(text) > maxMessage {
		return text
	}
	if chinese, ok := c.exact[text]; ok {
		return chinese
	}
	if rest, ok := strings.CutPrefix(text, ": "); ok { // follows another text
		return "：" + c.message(rest, depth-1)
	}

	if chinese, ok := c.blocks(text, depth-1); ok { // before patterns: a short one could fit the whole of it
		return chinese
	}
	if chinese, ok := c.find(text, depth, false); ok {
		return chinese
	}
	if strings.Contains(text, "\n") {
		return c.lines(text, depth-1)
	}

	if chinese, ok := c.faults(text, depth-1); ok {
		return chinese
	}
	if chinese, ok := c.cause(text, depth-1); ok {
		return chinese
	}
	if chinese, ok := c.find(text, depth, true); ok {
		return chinese
	}
	return text
}

// maxLines limits the lines of a message that are looked up. Only the output of programs has more, and each of them costs
// a walk through all patterns.
const maxLines = 32

// lines are several messages, as errors.Join writes them. Text with more lines than maxLines stays as it is.
func (c *Catalogue) lines(text string, depth int) string {
	if strings.Count(text, "\n") >= maxLines {
		return text
	}

	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = c.message(line, depth)
	}
	return strings.Join(lines, "\n")
}

// faults are several messages in one line, all of which are known.
func (c *Catalogue) faults(text string, depth int) (string, bool) {
	parts := strings.Split(text, "; ")
	if len(parts) == 1 || depth <= 0 {
		return "", false
	}
	for i, part := range parts {
		parts[i] = c.message(part, depth)
		if parts[i] == part {
			return "", false
		}
	}
	return strings.Join(parts, "；"), true
}

// find is the Chinese text of a message that is a known text, or that fits a pattern. inner allows that the argument
// before all words has a colon: then these words may be those of a cause, and another text stands before it.
func (c *Catalogue) find(text string, depth int, inner bool) (string, bool) {
	if chinese, ok := c.exact[text]; ok {
		return chinese, true
	}
	for i := range c.patterns {
		p := &c.patterns[i]
		args, ok := p.match(text)
		switch {
		case !ok || !inner && p.isCause(args):
			continue
		case p.joins(args): // several messages; the words are those of the first one
			return c.lines(text, depth-1), true
		}
		return p.fill(args, func(arg string) string { return c.message(arg, depth-1) }), true
	}
	return "", false
}

// maxPlaces limits the places that are looked for before a message.
const maxPlaces = 4

// cause is a message after its place, which stays: "hosts[3].ip: required", "policy.yaml: permission denied".
func (c *Catalogue) cause(text string, depth int) (string, bool) {
	if depth <= 0 {
		return "", false
	}
	end := 0
	for range maxPlaces {
		at := strings.Index(text[end:], ": ")
		if at < 0 {
			break
		}
		end += at + len(": ")
		if chinese, ok := c.find(text[end:], depth, false); ok {
			return text[:end] + chinese, true
		}
	}
	return "", false
}

// blocks is a text that is put together from known texts, the first of which ends before an empty line.
func (c *Catalogue) blocks(text string, depth int) (string, bool) {
	for at := 1; at < len(text); at++ {
		end := strings.Index(text[at:], "\n\n")
		if end < 0 {
			break
		}
		at += end
		if first, ok := c.exact[text[:at]]; ok {
			return first + c.message(text[at:], depth), true
		}
	}
	return "", false
}

// Entry is one text in both languages.
type Entry struct {
	English, Chinese string
	Line             int
}

// ReadPO reads a PO file: comments after #, and pairs of msgid and msgstr, whose text may go on in quotes on further
// lines.
func ReadPO(data string) ([]Entry, error) {
	var list []Entry
	var to *string
	number := 0
	for line := range strings.Lines(data) {
		number++
		line = strings.TrimSpace(line)
		switch word, rest, _ := strings.Cut(line, " "); {
		case line == "" || line[0] == '#':
			continue
		case word == "msgid":
			list = append(list, Entry{Line: number})
			to, line = &list[len(list)-1].English, rest
		case word == "msgstr" && len(list) > 0:
			to, line = &list[len(list)-1].Chinese, rest
		}

		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil || to == nil || len(line) == 0 || line[0] != '"' {
			return nil, fmt.Errorf("line %d is neither msgid, msgstr nor a text in quotes", number)
		}
		*to += text
	}
	return list, nil
}

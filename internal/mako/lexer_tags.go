package mako

import (
	"regexp"
	"strings"
)

var (
	tagStart     = regexp.MustCompile(`(?is)^<%([\p{L}\p{N}_.:]+)((?:\s+[\p{L}\p{N}_]+|\s*=\s*|"[^"]*?"|'[^']*?'|\s*,\s*)*)\s*(/)?>`)
	tagAttribute = regexp.MustCompile(`\s*([\p{L}\p{N}_]+)\s*=\s*(?:'([^']*)'|"([^"]*)")`)
)

// tagClass has for each tag the name that GSEKit's checker uses, and the attribute that it needs.
var tagClass = map[string]struct{ name, needs string }{
	"text":      {"TextTag", ""},
	"def":       {"DefTag", "name"},
	"include":   {"IncludeTag", "file"},
	"inherit":   {"InheritTag", "file"},
	"namespace": {"NamespaceTag", ""},
	"page":      {"PageTag", ""},
	"block":     {"BlockTag", ""},
	"call":      {"CallTag", "expr"},
}

// className is the name of Mako's class of a tag.
func className(keyword string) string {
	if strings.Contains(keyword, ":") {
		return "CallNamespaceTag"
	}
	return tagClass[keyword].name
}

func (l *lexer) tagStart() (bool, error) {
	if !strings.HasPrefix(l.rest(), "<%") {
		return false, nil
	}
	m := tagStart.FindStringSubmatch(l.rest())
	if m == nil {
		return false, nil
	}
	l.take(len(m[0]))
	p := &part{kind: partTag, keyword: m[1]}

	attributes := map[string]string{}
	for _, a := range tagAttribute.FindAllStringSubmatch(m[2], -1) {
		attributes[a[1]] = strings.ReplaceAll(a[2]+a[3], "\r\n", "\n")
	}
	if className(p.keyword) == "" {
		return false, l.fail("No such tag: '%s'", p.keyword)
	}
	if needs := tagClass[p.keyword].needs; needs != "" {
		if _, has := attributes[needs]; !has {
			return false, l.fail("Missing attribute(s): '%s'", needs)
		}
	}

	p.filters = attributes["filter"]
	if err := l.add(p); err != nil {
		return false, err
	}
	if m[3] != "" {
		l.tags = l.tags[:len(l.tags)-1]
		return true, nil
	}
	if p.keyword == "text" {
		return true, l.verbatim(p)
	}
	return true, nil
}

// verbatim takes the text inside of <%text> and its end.
func (l *lexer) verbatim(p *part) error {
	n := strings.Index(l.rest(), "</%text>")
	if n < 0 {
		return l.fail("Unclosed tag: <%%%s>", p.keyword)
	}
	text := l.rest()[:n]
	if n > 0 { // a match of nothing would skip the '<' of the end
		l.take(n)
		if err := l.add(&part{kind: partText, text: text}); err != nil {
			return err
		}
	}
	_, err := l.tagEnd()
	return err
}

func (l *lexer) tagEnd() (bool, error) {
	if !strings.HasPrefix(l.rest(), "</%") {
		return false, nil
	}
	name, size, searched := tagEnd(l.rest())
	if size == 0 {
		if l.unclosed += searched; l.unclosed > maxUnclosed {
			return false, l.fail("too many unclosed tags")
		}
		return false, nil
	}
	l.take(size)

	n := len(l.tags)
	if n == 0 {
		return false, l.fail("Closing tag without opening tag: </%%%s>", name)
	}
	if l.tags[n-1].keyword != name {
		return false, l.fail("Closing tag </%%%s> does not match tag: <%%%s>", name, l.tags[n-1].keyword)
	}
	l.tags = l.tags[:n-1]
	return true, nil
}

// tagEnd reads </%name> at the begin of a text: the name, how long the tag is (0 if there is none), and how much of the text
// was searched for its end.
func tagEnd(s string) (name string, size, searched int) {
	begin := skipBlanks(s, len("</%"))
	end := begin + 1
	for end < len(s) && s[end] != '>' && s[end] != ' ' && s[end] != '\t' {
		end++
	}
	last := skipBlanks(s, min(end, len(s)))
	if last >= len(s) || s[last] != '>' {
		return "", 0, last
	}
	return s[begin:end], last + 1, last
}

package docsite

import (
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// The bounds of a search.
const (
	maxQuery = 200 // bytes
	maxTerms = 8
	maxFound = 40
	around   = 90 // runes before and after what was found
)

// index has all sections of a book.
type index struct{ sections []section }

// section is a heading with its text.
type section struct {
	page          *page
	heading, name string // of the section; "" before the first heading
	text          string // as it is shown
	low           string // in small letters, to search in
	lowTitle      string // page and heading, in small letters
}

// newIndex reads the sections of all pages.
func newIndex(b *book) *index {
	var all index
	for _, p := range b.pages {
		all.sections = append(all.sections, sectionsOf(p)...)
	}
	slices.SortFunc(all.sections, func(x, y section) int { // the same order every time
		return strings.Compare(x.page.name+"#"+x.name, y.page.name+"#"+y.name)
	})
	return &all
}

// sectionsOf cuts a page at its headings.
func sectionsOf(p *page) (all []section) {
	at := section{page: p}
	var words []string
	end := func() {
		at.text = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
		at.low, at.lowTitle = strings.ToLower(at.text), strings.ToLower(p.title+" "+at.heading)
		all, words = append(all, at), nil
	}

	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			if h.Level > 1 {
				end()
				at = section{page: p, heading: textOf(h, p.source), name: anchorOf(h)}
			}
			continue
		}
		words = append(words, blockText(n, p.source)...)
	}
	end()
	return all
}

// blockText is the text of a block, with a break after each part of it.
func blockText(n ast.Node, source []byte) (all []string) {
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
		for k := n.FirstChild(); k != nil; k = k.NextSibling() {
			all = append(all, blockText(k, source)...)
		}
		return all
	}
	return []string{textOf(n, source)}
}

// terms cuts a question into words.
func terms(question string) []string {
	if len(question) > maxQuery {
		question = strings.ToValidUTF8(question[:maxQuery], "")
	}
	all := strings.FieldsFunc(strings.ToLower(question), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
	return all[:min(len(all), maxTerms)]
}

// pairs cuts a word of Chinese, which has no blanks, into pairs of characters. Other words are as they are.
func pairs(term string) []string {
	runes := []rune(term)
	if len(runes) < 3 || !slices.ContainsFunc(runes, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return []string{term}
	}
	var all []string
	for i := range runes[:len(runes)-1] {
		all = append(all, string(runes[i:i+2]))
	}
	return all
}

// found is a section that fits.
type found struct {
	section *section
	hits    int // words that it has
	score   int
}

// search finds sections, the best first. It takes sections with all words; if there are none, Chinese words are cut into pairs, and
// then some of the words are enough.
func (x *index) search(question string) []found {
	all := terms(question)
	if len(all) == 0 {
		return nil
	}
	if hits := x.with(all, len(all)); len(hits) > 0 {
		return hits
	}

	var cut []string
	for _, term := range all {
		cut = append(cut, pairs(term)...)
	}
	if hits := x.with(cut, len(cut)); len(hits) > 0 {
		return hits
	}
	return x.with(cut, max(1, (len(cut)+1)/2))
}

// with finds the sections that have at least so many of the words.
func (x *index) with(words []string, least int) (all []found) {
	for i := range x.sections {
		s := &x.sections[i]
		f := found{section: s}
		for _, word := range words {
			title, text := strings.Contains(s.lowTitle, word), strings.Count(s.low, word)
			if !title && text == 0 {
				continue
			}
			f.hits++
			f.score += min(text, 5)
			if title {
				f.score += 10
			}
			if strings.ToLower(s.page.title) == word || strings.ToLower(s.heading) == word {
				f.score += 20
			}
		}
		if f.hits >= least {
			all = append(all, f)
		}
	}

	slices.SortStableFunc(all, func(a, b found) int {
		if a.hits != b.hits {
			return b.hits - a.hits
		}
		return b.score - a.score
	})
	return all
}

// result is a section as the page of a search shows it.
type result struct {
	Title, Path string
	Text        template.HTML
}

// search answers a question.
func (s *Site) search(w http.ResponseWriter, r *http.Request, b *book) int {
	question := strings.TrimSpace(r.URL.Query().Get("q"))
	hits := b.find().search(question)
	shown := hits[:min(len(hits), maxFound)]

	v := s.view(b, nil)
	v.Question, v.Title = question, b.say("Search")
	switch {
	case question == "":
	case len(hits) == 0:
		v.Note = b.say("Nothing was found. Try fewer or other words")
	case len(hits) > len(shown):
		v.Note = fmt.Sprintf(b.say("%d places, the first %d are shown"), len(hits), len(shown))
	default:
		v.Note = fmt.Sprintf(b.say("%d places"), len(hits))
	}

	words := terms(question)
	for _, term := range words {
		words = append(words, pairs(term)...)
	}
	for _, f := range shown {
		v.Results = append(v.Results, f.section.result(b, words))
	}
	return send(w, r, http.StatusOK, html, v.text())
}

// result is how a section is shown.
func (s *section) result(b *book, words []string) result {
	r := result{Title: s.page.title, Path: pathOf(b.language, s.page.name)}
	if s.heading != "" {
		r.Title, r.Path = r.Title+" › "+s.heading, r.Path+"#"+s.name
	}
	r.Text = excerpt(s.text, words)
	return r
}

// excerpt is the text around the first word that was found, with all words in it marked.
func excerpt(text string, words []string) template.HTML {
	runes, low := []rune(text), []rune(strings.ToLower(text))
	if len(low) != len(runes) { // a few letters have small forms of other lengths
		low = runes
	}

	at := 0
	for _, word := range words {
		if i := strings.Index(string(low), word); i >= 0 {
			at = len([]rune(string(low)[:i]))
			break
		}
	}
	from, to := max(0, at-around), min(len(runes), at+around)

	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	for i := from; i < to; {
		n := longest(low[i:to], words)
		if n == 0 {
			b.WriteString(template.HTMLEscapeString(string(runes[i])))
			i++
			continue
		}
		b.WriteString("<mark>" + template.HTMLEscapeString(string(runes[i:i+n])) + "</mark>")
		i += n
	}
	if to < len(runes) {
		b.WriteString("…")
	}
	return template.HTML(b.String()) // #nosec G203 -- every rune is escaped
}

// longest is the length of the longest of the words that a text begins with.
func longest(text []rune, words []string) (n int) {
	for _, word := range words {
		w := []rune(word)
		if len(w) > n && len(w) <= len(text) && slices.Equal(text[:len(w)], w) {
			n = len(w)
		}
	}
	return n
}

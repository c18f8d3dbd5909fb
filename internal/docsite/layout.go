package docsite

import (
	"bytes"
	_ "embed"
	"html/template"
)

//go:embed style.css
var styleText []byte

//go:embed layout.html
var layoutText string

var layout = template.Must(template.New("layout").Parse(layoutText))

// view is what the layout shows: a page, the results of a search, or a note.
type view struct {
	book    *book
	Title   string
	Page    *page // nil: no page
	Body    template.HTML
	Places  []place
	Other   string // the address of the page in the other language
	Note    string
	Results []result

	Question string
}

// Language, Groups, Say and Path are for the layout.
func (v *view) Language() string { return v.book.language }

// Groups are all pages.
func (v *view) Groups() []group { return v.book.groups }

// Say gives a word in the language of the page.
func (v *view) Say(text string) string { return v.book.say(text) }

// Path is the address of a page.
func (v *view) Path(name string) string { return pathOf(v.book.language, name) }

// Here reports whether a page is the one that is shown.
func (v *view) Here(p *page) bool { return v.Page == p }

// OtherLanguage names the language of Other.
func (v *view) OtherLanguage() string {
	if v.book.language == english {
		return "中文"
	}
	return "English"
}

// view begins a page.
func (s *Site) view(b *book, p *page) *view {
	other := english
	if b.language == english {
		other = chinese
	}
	v := &view{book: b, Page: p, Other: pathOf(other, "")}
	if p == nil {
		return v
	}

	v.Title, v.Body = p.title, p.body()
	if s.books[other].pages[p.name] != nil {
		v.Other = pathOf(other, p.name)
	}
	for _, place := range p.places {
		if place.Level <= 3 {
			v.Places = append(v.Places, place)
		}
	}
	return v
}

// whole is the text of a page with all that is around it.
func (s *Site) whole(b *book, p *page) []byte { return s.view(b, p).text() }

// note is a page that says one sentence.
func (s *Site) note(b *book, title, text string) []byte {
	v := s.view(b, nil)
	v.Title, v.Note = title, text
	return v.text()
}

func (v *view) text() []byte {
	var b bytes.Buffer
	if err := layout.Execute(&b, v); err != nil { // a buffer takes everything
		panic("docsite: cannot show a page: " + err.Error())
	}
	return b.Bytes()
}

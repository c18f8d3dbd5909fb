package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// page is one page.
type page struct {
	name   string // as in its address
	file   string // below docs
	title  string
	source []byte
	tree   ast.Node
	body   func() template.HTML
	places []place // its headings, from the second level on
}

// place is a heading of a page.
type place struct {
	Level       int
	Title, Name string // Name is that of the anchor
}

// group is a part of the list of pages.
type group struct {
	Title string
	Pages []*page
}

// Title and Name are for the layout.
func (p *page) Title() string { return p.title }

// Name is the name in the address.
func (p *page) Name() string { return p.name }

// read reads all pages. Below zh lie those in Chinese.
func read(files fs.FS) (*Site, error) {
	s := &Site{files: files, books: map[string]*book{}}
	for language := range words {
		s.books[language] = &book{language: language, pages: map[string]*page{}}
	}

	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".md" {
			return err
		}
		language, name := placeOf(file)
		p, err := s.newPage(file, name, language)
		if err != nil {
			return err
		}
		s.books[language].pages[name] = p
		return nil
	})
	if err != nil {
		return nil, err
	}

	for language, b := range s.books {
		first := b.pages[""]
		if first == nil {
			return nil, fmt.Errorf("there is no first page in %s", language)
		}
		b.groups = b.listed(first)
		b.find = sync.OnceValue(func() *index { return newIndex(b) })
	}
	return s, nil
}

// placeOf is the language and the name of a page by its file.
func placeOf(file string) (language, name string) {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(file, ".md"), "README"), "/")
	if rest, ok := strings.CutPrefix(file, chinese+"/"); ok {
		_, name = placeOf(rest)
		return chinese, name
	}
	return english, name
}

// newPage parses a page.
func (s *Site) newPage(file, name, language string) (*page, error) {
	source, err := fs.ReadFile(s.files, file)
	if err != nil {
		return nil, err
	}

	p := &page{name: name, file: file, source: source}
	p.tree = markdown.Parser().Parse(text.NewReader(source))
	p.headings()
	if p.title == "" {
		return nil, fmt.Errorf("the page %s has no title", file)
	}
	p.body = sync.OnceValue(func() template.HTML { return s.render(p, language) })
	return p, nil
}

// headings names the headings of a page as a forge does, and keeps them.
func (p *page) headings() {
	used := map[string]int{}
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		h, ok := n.(*ast.Heading)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		title := textOf(h, p.source)
		name := Anchor(title)
		used[name]++
		if n := used[name]; n > 1 {
			name = fmt.Sprintf("%s-%d", name, n-1)
		}

		h.SetAttributeString("id", []byte(name))
		if h.Level == 1 && p.title == "" {
			p.title = title
		} else {
			p.places = append(p.places, place{h.Level, title, name})
		}
		return ast.WalkSkipChildren, nil
	})
}

// listed makes the list of pages from the links of the first page: a heading of it begins a group. What it does not name is left out.
func (b *book) listed(first *page) (all []group) {
	seen := map[*page]bool{first: true}
	all = append(all, group{Title: b.say("Documentation"), Pages: []*page{first}})
	_ = ast.Walk(first.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level > 1 {
				all = append(all, group{Title: textOf(n, first.source)})
			}
		case *ast.Link:
			p := b.at(first, string(n.Destination))
			if p != nil && !seen[p] {
				seen[p] = true
				g := &all[len(all)-1]
				g.Pages = append(g.Pages, p)
			}
		}
		return ast.WalkContinue, nil
	})
	return slices.DeleteFunc(all, func(g group) bool { return len(g.Pages) == 0 })
}

// at is the page of this language that a link leads to.
func (b *book) at(from *page, link string) *page {
	to, _, _ := strings.Cut(link, "#")
	if to == "" || strings.Contains(to, ":") {
		return nil
	}
	_, name := placeOf(path.Join(path.Dir(from.file), to))
	return b.pages[name]
}

// render makes the text of a page for a browser.
func (s *Site) render(p *page, language string) template.HTML {
	s.lead(p, language)
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.source, p.tree); err != nil { // a buffer takes everything
		panic("docsite: cannot render " + p.file + ": " + err.Error())
	}
	return template.HTML(b.String()) // #nosec G203 -- made from pages of the program, without HTML of theirs
}

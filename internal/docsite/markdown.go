package docsite

import (
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
)

// markdown reads pages as forges do. HTML in a page is left out.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table))

// Anchor is the name that a forge gives to a heading.
func Anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// anchorOf is the name of a heading in its page.
func anchorOf(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	name, _ := id.([]byte)
	return string(name)
}

// textOf is the text of a node without its marks.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(k ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch k := k.(type) {
		case *ast.Text:
			b.Write(k.Segment.Value(source))
			if k.SoftLineBreak() || k.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(k.Value)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.Write(k.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// lead turns the links of a page into addresses of the site. A link to a file that the program does not have becomes its text: the
// files of the source are not here.
func (s *Site) lead(p *page, language string) {
	var outside []*ast.Link
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, known := s.address(p, string(n.Destination), language)
			if !known {
				outside = append(outside, n)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			n.Destination = []byte(pictures + path.Base(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})

	for _, link := range outside {
		parent := link.Parent()
		for k := link.FirstChild(); k != nil; k = link.FirstChild() {
			parent.InsertBefore(parent, link, k)
		}
		parent.RemoveChild(parent, link)
	}
	if language != english {
		withoutSwitch(p)
	}
}

// address is where a link leads on the site. A page in another language than English leads to pages of its language where there are any.
func (s *Site) address(from *page, link, language string) (to string, known bool) {
	file, anchor, _ := strings.Cut(link, "#")
	switch {
	case strings.Contains(file, ":"):
		return link, true
	case file == "":
		return "#" + anchor, true
	}

	target := path.Join(path.Dir(from.file), file)
	if path.Ext(target) != ".md" || strings.HasPrefix(target, "..") {
		if strings.HasSuffix(target, "definition.schema.json") || strings.HasSuffix(target, "openapi.json") {
			return "/api/v1/" + path.Base(target), true
		}
		return "", false
	}
	own, name := placeOf(target)
	if own == english && language != english && anchor == "" && s.books[language].pages[name] != nil {
		own = language
	}
	if s.books[own].pages[name] == nil {
		return "", false
	}
	to = pathOf(own, name)
	if anchor != "" {
		to += "#" + anchor
	}
	return to, true
}

// withoutSwitch removes the link to the English page, which is the first paragraph of the others: the head of each page has it.
func withoutSwitch(p *page) {
	first := p.tree.FirstChild()
	if first == nil {
		return
	}
	second, ok := first.NextSibling().(*ast.Paragraph)
	if ok && textOf(second, p.source) == "English" {
		p.tree.RemoveChild(p.tree, second)
	}
}

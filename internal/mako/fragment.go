package mako

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var fragment = regexp.MustCompile(`(?s)^([\p{L}\p{N}_]+)(?:\s+(.*?))?:\s*(#|$)`)

// parse reads the Python of a part and gives it the lines of the template.
func (p *part) parse() error {
	switch {
	case p.kind == partExpression:
		return p.python(p.text, func(int) int { return p.line })
	case p.kind == partCode:
		trimmed := strings.TrimLeftFunc(p.text, unicode.IsSpace)
		before := strings.Count(p.text[:len(p.text)-len(trimmed)], "\n")
		return p.python(p.text, func(line int) int { return p.line + before + line - 1 })
	case p.kind == partControl && !p.end:
		code, err := p.whole()
		if err != nil {
			return err
		}
		if err := p.python(code, func(int) int { return p.line }); err != nil {
			return err
		}
		p.pick()
	}
	return nil
}

func (p *part) fail(format string, args ...any) error {
	return &ParseError{fmt.Sprintf(format, args...), p.line, p.pos}
}

// python parses code. Line converts a line of the code to one of the template.
func (p *part) python(code string, line func(int) int) error {
	code = strings.TrimLeftFunc(code, unicode.IsSpace)
	tree, fault := parsePython(code)
	if fault != nil {
		shown := []rune(code)
		shown = shown[:min(len(shown), 50)]
		return p.fail("(%s) %s (%s)", fault.class, fault.Error(), quote(string(shown)))
	}
	tree.walk(func(n *node) bool { n.line = line(n.line); return true })
	p.tree = tree
	return nil
}

// whole is a control line as a whole Python statement, as Mako completes it.
func (p *part) whole() (string, error) {
	m := fragment.FindStringSubmatchIndex(strings.TrimSpace(p.text))
	if m == nil {
		return "", p.fail("Fragment '%s' is not a partial control statement", p.text)
	}
	code := p.text
	if m[7] > m[6] { // a comment at the end
		code = code[:m[6]]
	}

	switch keyword := code[m[2]:m[3]]; keyword {
	case "for", "if", "while", "with":
		return code + "pass", nil
	case "try":
		return code + "pass\nexcept:pass", nil
	case "elif", "else":
		return "if False:pass\n" + code + "pass", nil
	case "except":
		return "try:pass\n" + code + "pass", nil
	default:
		return "", p.fail("Unsupported control keyword: '%s'", keyword)
	}
}

// pick takes the statement, or the part of it, that the control line has.
func (p *part) pick() {
	if len(p.tree.kids) == 0 {
		return
	}
	first := p.tree.kids[0]
	switch p.keyword {
	case "elif":
		p.tree = first.kids[2].kids[0]
	case "else":
		p.tree = &node{kind: kBlock, line: p.line}
	case "except":
		p.tree = first.kids[3]
	default:
		p.tree = first
	}
}

// frame is a block of control lines that is open while the parts are put together.
type frame struct {
	last  *node // the statement that the next elif, else or except goes on with
	block *node // where statements go
	elifs int
}

// assemble makes one Python block of the parts: texts and expressions become statements of their own kinds. Module code
// runs first.
func assemble(parts []*part) (*node, error) {
	root := &node{kind: kBlock, line: 1}
	var module []*node
	frames := []*frame{{block: root}}
	for _, p := range parts {
		top := frames[len(frames)-1]
		add := func(n ...*node) { top.block.kids = append(top.block.kids, n...) }

		switch p.kind {
		case partText:
			add(&node{kind: kWrite, line: p.line, name: p.text})
		case partExpression:
			n, err := p.show()
			if err != nil {
				return nil, err
			}
			add(n)
		case partCode:
			if p.module {
				module = append(module, p.tree.kids...)
				break
			}
			add(p.tree.kids...)
		case partTag:
			n, err := p.verbatim()
			if err != nil {
				return nil, err
			}
			add(n...)
		case partControl:
			switch {
			case p.end:
				frames = frames[:len(frames)-1]
			case primary[p.keyword]:
				f := open(p)
				add(p.tree)
				frames = append(frames, f)
			case len(frames) == 1:
				return nil, p.fail("(SyntaxError) invalid syntax (%s)", quote(p.text))
			case top.elifs > maxChain:
				return nil, p.fail("too many nested blocks")
			default:
				top.goOn(p)
			}
		}
	}
	root.kids = append(module, root.kids...)
	return root, nil
}

// open begins the block of a control line.
func open(p *part) *frame {
	n := p.tree
	block := &node{kind: kBlock, line: p.line}
	n.paren = p.keyword == "for"
	switch n.kind {
	case kIf, kWhile:
		n.kids[1] = block
	case kFor:
		n.kids[2] = block
	case kTry:
		n.kids = []*node{block, nil, nil}
	case kWith:
		n.kids[len(n.kids)-1] = block
	}
	return &frame{last: n, block: block}
}

// goOn begins the next block of a statement: elif, else, except.
func (f *frame) goOn(p *part) {
	f.block = &node{kind: kBlock, line: p.line}
	switch p.keyword {
	case "elif":
		f.elifs++
		p.tree.kids[1], p.tree.kids[2] = f.block, nil
		f.last.kids[2] = &node{kind: kBlock, line: p.line, kids: []*node{p.tree}}
		f.last = p.tree
	case "else":
		f.last.kids[len(f.last.kids)-1] = f.block // of if and for: the last child is its else
	case "except":
		p.tree.kids[1] = f.block
		f.last.kids = append(f.last.kids, p.tree)
	}
}

// show is the statement for an expression: the arguments of str as a tuple, and then the filters.
func (p *part) show() (*node, error) {
	args := &node{kind: kTuple, line: p.line}
	if len(p.tree.kids) > 1 || len(p.tree.kids) == 1 && p.tree.kids[0].kind != kExpression {
		return nil, p.fail("(SyntaxError) invalid syntax (%s)", quote(p.text))
	}
	if len(p.tree.kids) == 1 {
		value := p.tree.kids[0].kids[0]
		args.kids = []*node{value}
		if value.kind == kTuple && !value.paren { // ${a, b} is str(a, b)
			args.kids = value.kids
		}
	}
	filters, err := p.filterNodes()
	if err != nil {
		return nil, err
	}
	return &node{kind: kShow, line: p.line, kids: append([]*node{args}, filters...)}, nil
}

// filterNodes are the filters: those of Mako by name, others as expressions.
func (p *part) filterNodes() ([]*node, error) {
	if p.filters == "" {
		return nil, nil
	}
	tree, fault := parsePython(p.filters)
	if fault != nil || len(tree.kids) != 1 || tree.kids[0].kind != kExpression {
		return nil, p.fail("(SyntaxError) invalid syntax (%s)", quote(p.filters))
	}
	list := []*node{tree.kids[0].kids[0]}
	if list[0].kind == kTuple {
		list = list[0].kids
	}

	for i, f := range list {
		f.walk(func(n *node) bool { n.line = p.line; return true })
		if f.kind == kName && makoFilters[f.name] != nil {
			list[i] = &node{kind: kString, line: p.line, name: f.name}
		}
	}
	return list, nil
}

// verbatim gives the text in <%text>. No other tag can be rendered.
func (p *part) verbatim() ([]*node, error) {
	if p.keyword != "text" {
		return nil, p.fail("tag <%%%s> is not supported", p.keyword)
	}
	filters, err := p.filterNodes()
	if err != nil {
		return nil, err
	}
	var all []*node
	for _, inner := range p.parts {
		if inner.kind != partText {
			continue
		}
		if len(filters) == 0 {
			all = append(all, &node{kind: kWrite, line: inner.line, name: inner.text})
			continue
		}
		args := &node{kind: kTuple, line: inner.line, kids: []*node{{kind: kString, line: inner.line, name: inner.text}}}
		all = append(all, &node{kind: kShow, line: inner.line, kids: append([]*node{args}, filters...)})
	}
	return all, nil
}

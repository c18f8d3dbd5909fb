package mako

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// forbiddenText has the names that GSEKit's checker rejects, one on each line. They are the names in Python modules that
// reach outside.
//
//go:embed forbidden.txt
var forbiddenText string

var forbidden = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(forbiddenText) {
		all[name] = true
	}
	return all
})

// importable has the names that templates may import and use, although some are in the list of forbidden names.
var importable = map[string]bool{"datetime": true, "re": true, "random": true, "json": true, "math": true, "test": true,
	"path": true, "enumerate": true, "name": true, "time": true, "replace": true}

// CheckError is a verdict of the checker, in the words of GSEKit.
type CheckError struct{ Message string }

func (e *CheckError) Error() string { return e.Message }

// Check tells whether GSEKit's checker accepts a text; the error is a *CheckError. A text that it accepts may still fail
// to render.
func Check(text string) (err error) {
	defer ownFault(&err)
	parts, err := lex(text)
	if err != nil {
		return &CheckError{"mako解析失败, " + err.Error()}
	}

	for _, p := range parts {
		if p.kind == partTag && p.keyword != "text" {
			return &CheckError{fmt.Sprintf("不支持[%s]节点", className(p.keyword))}
		}
		if err := checkTree(p.tree); err != nil {
			return err
		}
	}
	return nil
}

// checkTree gives the first name in a tree that is forbidden.
func checkTree(tree *node) error {
	var found error
	tree.walk(func(n *node) bool {
		found = checkNode(n)
		return found == nil
	})
	return found
}

func checkNode(n *node) error {
	switch n.kind {
	case kImport, kImportFrom:
		for i := 0; i < len(n.names); i += 2 {
			for name := range strings.SplitSeq(n.names[i], ".") {
				if !importable[name] {
					return &CheckError{fmt.Sprintf("发现非法导入:[%s]，请修改", name)}
				}
			}
		}
	case kName:
		if forbidden()[n.name] && !importable[n.name] {
			return &CheckError{fmt.Sprintf("发现非法名称使用:[%s]，请修改", n.name)}
		}
	case kAttribute:
		free := n.name == "get" || n.name == "replace" || n.kids[0].kind == kName && importable[n.kids[0].name]
		if !free && forbidden()[n.name] {
			return &CheckError{fmt.Sprintf("发现非法属性使用:[%s]，请修改", n.name)}
		}
	}
	return nil
}

//go:build linux

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Keys that are held while another is pressed.
const (
	Alt   = kb.ModifierAlt
	Ctrl  = kb.ModifierCtrl
	Shift = kb.ModifierShift
)

// Keys that have no letter.
const (
	Enter  = kb.Enter
	Escape = kb.Escape
	Tab    = kb.Tab
	Up     = kb.ArrowUp
	Down   = kb.ArrowDown
	Delete = kb.Delete
)

// find finds what has a role and an accessible name, as the browser tells them to a screen reader. "" is any.
func find(ctx context.Context, role, name string) ([]cdp.BackendNodeID, error) {
	doc, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "document",
		ObjectGroup: "gozzard"})
	if err != nil {
		return nil, err
	}
	if doc.Result == nil || doc.Result.ObjectID == "" {
		return nil, errors.New("there is no document")
	}

	r, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{
		ObjectID: doc.Result.ObjectID, Role: role, AccessibleName: name})
	if err != nil {
		return nil, err
	}
	var ids []cdp.BackendNodeID
	for _, n := range r.Nodes {
		if !n.Ignored && n.BackendDOMNodeID != 0 {
			ids = append(ids, n.BackendDOMNodeID)
		}
	}
	return ids, nil
}

// Has reports whether something with a role and a name is there now.
func (p *Page) Has(role, name string) bool {
	p.t.Helper()
	return p.Count(role, name) > 0
}

// Count counts what has a role and a name now.
func (p *Page) Count(role, name string) (n int) {
	p.t.Helper()
	p.must("count "+words(role, name), func(ctx context.Context) error {
		ids, err := find(ctx, role, name)
		n = len(ids)
		return err
	})
	return n
}

// Wait waits until something with a role and a name is there.
func (p *Page) Wait(role, name string) {
	p.t.Helper()
	p.until(words(role, name), func(ctx context.Context) (bool, error) {
		ids, err := find(ctx, role, name)
		return len(ids) > 0, err
	})
}

// WaitNo waits until nothing with a role and a name is there.
func (p *Page) WaitNo(role, name string) {
	p.t.Helper()
	p.until("the end of "+words(role, name), func(ctx context.Context) (bool, error) {
		ids, err := find(ctx, role, name)
		return err == nil && len(ids) == 0, err
	})
}

// Click clicks with the mouse on the first thing with a role and a name, while keys such as Shift are held.
// It waits until the thing is there, can be seen, stands still, and is neither disabled nor covered: while a page is
// loading, its parts move, and a click would miss them.
func (p *Page) Click(role, name string, held ...kb.Modifier) {
	p.t.Helper()
	var x, y float64
	p.until(words(role, name)+" that can be clicked", func(ctx context.Context) (bool, error) {
		lastX, lastY := x, y
		var err error
		x, y, err = middle(ctx, role, name)
		return err == nil && x == lastX && y == lastY, err
	})

	p.do("click "+words(role, name), chromedp.MouseClickXY(x, y, chromedp.ButtonModifiers(held...)))
}

// ClickAt clicks with the mouse on a point of the first element of a CSS selector, counted from its upper left corner.
// It waits until the element stands still and the mouse would reach it there.
func (p *Page) ClickAt(css string, x, y float64) {
	p.t.Helper()
	var at, last struct{ X, Y float64 }
	p.until("a point of "+css+" that can be clicked", func(context.Context) (bool, error) {
		last = at
		err := p.eval(fmt.Sprintf(`(() => {
			const e = document.querySelector(%s);
			e?.scrollIntoView({block: "nearest"});
			const r = e?.getBoundingClientRect(), x = r?.x + %v, y = r?.y + %v;
			return e && document.elementFromPoint(x, y) === e ? {x, y} : {x: 0, y: 0};
		})()`, quote(css), x, y), &at)
		return at.X > 0 && at == last, err
	})

	p.do("click on "+css, chromedp.MouseClickXY(at.X, at.Y))
}

// ChooseFile gives a file to the first file field of the page.
func (p *Page) ChooseFile(file string) {
	p.t.Helper()
	p.WaitSelector("input[type=file]")
	p.must("choose "+file, func(ctx context.Context) error {
		field, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{ObjectGroup: "gozzard",
			Expression: `document.querySelector("input[type=file]")`})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(ctx, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{file},
			ObjectID: field.Result.ObjectID})
		return err
	})
}

// reached says whether the mouse would reach an element at a point.
const reached = `function(x, y) {
	const e = this.nodeType === 1 ? this : this.parentElement, at = document.elementFromPoint(x, y);
	if (e.disabled) return "it is disabled";
	const own = at && (e.contains(at) || at.contains(e) || [...(e.labels ?? [])].some((l) => l.contains(at)));
	return own ? "" : "it is covered by " + (at?.outerHTML ?? "nothing").slice(0, 200);
}`

// middle scrolls to the first thing with a role and a name, and finds its middle.
func middle(ctx context.Context, role, name string) (x, y float64, err error) {
	ids, err := find(ctx, role, name)
	if err != nil {
		return 0, 0, err
	}
	if len(ids) == 0 {
		return 0, 0, errors.New("it is not there")
	}

	// Look at it.
	id := ids[0]
	_, err = chromedp.Call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: id})
	if err != nil {
		return 0, 0, err
	}
	r, err := chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: id})
	if err != nil {
		return 0, 0, err
	}
	if len(r.Quads) == 0 || len(r.Quads[0]) != 8 {
		return 0, 0, errors.New("it is not visible")
	}
	q := r.Quads[0]
	x, y = (q[0]+q[2]+q[4]+q[6])/4, (q[1]+q[3]+q[5]+q[7])/4

	// Find out whether the mouse would reach it.
	node, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: id, ObjectGroup: "gozzard"})
	if err != nil {
		return 0, 0, err
	}
	yes := true
	said, err := chromedp.Call(ctx, runtime.CallFunctionOn, runtime.CallFunctionOnParams{FunctionDeclaration: reached,
		ObjectID: node.Object.ObjectID, ReturnByValue: &yes,
		Arguments: []*runtime.CallArgument{{Value: []byte(toJSON(x))}, {Value: []byte(toJSON(y))}}})
	if err != nil {
		return 0, 0, err
	}
	var words string
	if err := json.Unmarshal([]byte(said.Result.Value), &words); err != nil {
		return 0, 0, err
	}
	if words != "" {
		return 0, 0, errors.New(words)
	}
	return x, y, nil
}

// hasFocus reports whether the first thing with a role and a name has the focus.
func hasFocus(ctx context.Context, role, name string) (bool, error) {
	ids, err := find(ctx, role, name)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	node, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: ids[0], ObjectGroup: "gozzard"})
	if err != nil {
		return false, err
	}
	yes := true
	said, err := chromedp.Call(ctx, runtime.CallFunctionOn, runtime.CallFunctionOnParams{ObjectID: node.Object.ObjectID,
		ReturnByValue: &yes, FunctionDeclaration: `function() { return document.activeElement === this }`})
	if err != nil {
		return false, err
	}
	return string(said.Result.Value) == "true", nil
}

// Fill replaces the text of the field with a name.
func (p *Page) Fill(name, text string) {
	p.t.Helper()
	role := ""
	p.until("the field "+quote(name), func(ctx context.Context) (bool, error) {
		for _, role = range []string{"textbox", "searchbox", "combobox", "spinbutton"} {
			if ids, err := find(ctx, role, name); err != nil || len(ids) > 0 {
				return err == nil, err
			}
		}
		return false, nil
	})

	// A fault that appears meanwhile moves the field away from under the mouse: a person clicks again.
	for has, tries := false, 0; !has; tries++ {
		if tries == 10 {
			p.t.Fatalf("%s does not get the focus", words(role, name))
		}
		p.Click(role, name)
		p.must("look for the focus", func(ctx context.Context) (err error) {
			has, err = hasFocus(ctx, role, name)
			return err
		})
	}
	p.Eval(`document.activeElement.select?.()`, nil)
	if text == "" {
		p.Press(Delete)
		return
	}
	p.must("type", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// Type types a text on the keyboard, into what has the focus.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.do("type "+text, chromedp.KeyEvent(text))
}

// TypeUntil types keys until an expression is true. The two keys of a shortcut belong together for about a second only,
// which a busy machine may need for the first of them.
func (p *Page) TypeUntil(keys, what, js string) {
	p.t.Helper()
	p.until(what, func(context.Context) (ok bool, err error) {
		p.Type(keys)
		for end := time.Now().Add(time.Second); !ok && err == nil && time.Now().Before(end); {
			err = p.eval("Boolean("+js+")", &ok)
		}
		return ok, err
	})
}

// Press presses a key, such as Enter or "k", while others are held.
func (p *Page) Press(key string, held ...kb.Modifier) {
	p.t.Helper()
	p.do(fmt.Sprintf("press %q", key), chromedp.KeyEvent(key, chromedp.KeyModifiers(held...)))
}

// words names something by its role and its name.
func words(role, name string) string {
	switch {
	case name == "":
		return role
	case role == "":
		return quote(name)
	}
	return role + " " + quote(name)
}

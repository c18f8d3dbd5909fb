//go:build linux

package console

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watchPolicy tells the console of the browser about every violation of the page's policy.
const watchPolicy = `addEventListener("securitypolicyviolation", (e) =>
	console.error("policy: " + e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber));`

// listen collects what a page must not do: exceptions that nothing catches, errors in the console of the browser, and
// violations of its policy. A request that the server refuses is none: the browser logs it as one of the network.
func (p *Page) listen() error {
	_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy})
	if err != nil {
		return err
	}

	go each(chromedp.Events(p.ctx, runtime.ExceptionThrown), func(e runtime.EventExceptionThrown) {
		p.fault("exception: " + exceptionText(e.ExceptionDetails))
	})
	go each(chromedp.Events(p.ctx, runtime.ConsoleAPICalled), func(e runtime.EventConsoleAPICalled) {
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			p.fault("console: " + arguments(e.Args))
		}
	})
	go each(chromedp.Events(p.ctx, log.EntryAdded), func(e log.EventEntryAdded) {
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			p.fault(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	})
	return nil
}

// each calls f for every event until the tab ends.
func each[E any](events iter.Seq2[E, error], f func(E)) {
	for e, err := range events {
		if err != nil {
			return
		}
		f(e)
	}
}

func exceptionText(e *runtime.ExceptionDetails) string {
	if e == nil {
		return "unknown"
	}
	if e.Exception != nil {
		return e.Text + " " + arguments([]*runtime.RemoteObject{e.Exception}) + " " + e.URL
	}
	return e.Text + " " + e.URL
}

// arguments are the values of a line of the console.
func arguments(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		if a.Description != "" {
			words = append(words, a.Description)
			continue
		}
		words = append(words, string(a.Value))
	}
	return strings.Join(words, " ")
}

// mark begins a fault that settle makes.
const mark = "gozzard-mark-"

// Settle waits until every fault that the page made before is among Faults.
func (p *Page) Settle() {
	p.t.Helper()
	if err := p.settle(); err != nil {
		p.t.Fatal(err)
	}
}

// settle waits until every fault that the page made before is known: faults come in order, so it makes one of each kind
// and waits for it.
func (p *Page) settle() error {
	p.mu.Lock()
	p.settled++
	round := strconv.Itoa(p.settled)
	p.mu.Unlock()
	kinds := []string{mark + "console-" + round, mark + "exception-" + round}
	err := p.eval(`void (console.error(`+quote(kinds[0])+`), setTimeout(() => { throw new Error(`+quote(kinds[1])+`) }))`,
		nil)
	for end := time.Now().Add(Patience); err == nil; time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		both := p.marks[kinds[0]] && p.marks[kinds[1]]
		p.mu.Unlock()
		if both {
			return nil
		}
		if time.Now().After(end) {
			err = errors.New("it does not report its errors")
		}
	}
	return err
}

func (p *Page) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, kind, ok := strings.Cut(text, mark); ok {
		kind, _, _ = strings.Cut(strings.Trim(kind, `"`), "\n")
		p.marks[mark+strings.Fields(kind)[0]] = true
		return
	}
	if !slices.ContainsFunc(p.allowed, func(a string) bool { return strings.Contains(text, a) }) {
		p.faults = append(p.faults, clip(text, 1000))
	}
}

// Allow makes faults with a text in them no faults, for a test that causes them.
func (p *Page) Allow(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, text)
	p.faults = slices.DeleteFunc(p.faults, func(f string) bool { return strings.Contains(f, text) })
}

// Faults are what the page did until now that no page may do.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// violation is what axe-core says about a rule that is violated.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Accessible fails the test with everything that axe-core finds on the page as it is now. Rules that are named are left
// out.
func (p *Page) Accessible(except ...string) {
	p.t.Helper()
	axe, err := os.ReadFile(filepath.Join(root(p.t), "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		p.t.Fatalf("cannot read axe-core, which make web installs: %v", err)
	}

	// The debugger puts the code into the page: the policy of the page is for the page.
	var found []violation
	rules := map[string]any{}
	for _, id := range except {
		rules[id] = map[string]bool{"enabled": false}
	}
	var there bool
	if p.Eval(`"axe" in window`, &there); !there { // once for each page that is loaded: it is half a megabyte
		p.Eval(string(axe)+"; 0", nil)
	}
	p.Eval(`axe.run(document, {resultTypes: ["violations"], rules: `+toJSON(rules)+`}).then((r) => r.violations)`, &found)
	for _, v := range found {
		text := fmt.Sprintf("axe-core on %s: %s (%s): %s", p.Path(), v.ID, v.Impact, v.Help)
		for i, n := range v.Nodes {
			if i == 5 {
				text += fmt.Sprintf("\n  and %d more", len(v.Nodes)-i)
				break
			}
			text += "\n  " + clip(n.HTML, 300) + "\n    " + strings.ReplaceAll(clip(n.Summary, 500), "\n", "\n    ")
		}
		p.t.Error(text)
	}
}

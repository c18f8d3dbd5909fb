//go:build linux

package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// newestLine: a log that was scrolled stays where it is while lines come, until a button goes to its end again.
func newestLine(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	const atEnd = `((l) => l.scrollTop + l.clientHeight >= l.scrollHeight - 24)(document.querySelector(".log"))`
	newer := func(than string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".log-line")].at(-1).innerText !== %q`, than)
	}
	p.Until("more lines than fit", `((l) => l.scrollHeight > l.clientHeight + 100)(document.querySelector(".log"))`)

	// A line that comes before the page has seen the scrolling scrolls back.
	p.Until("the button", `(() => { document.querySelector(".log").scrollTop = 0;
		return [...document.querySelectorAll("main button")].some((b) => b.innerText === "To the newest line"); })()`)
	last := lastLine(p)
	waitLog(t, f, "ticker", 5)
	p.Until("newer lines", newer(last))
	p.Until("the log where it was", `document.querySelector(".log").scrollTop === 0`)

	p.Click("button", "To the newest line")
	p.WaitNo("button", "To the newest line")
	p.Until("the end", atEnd)
	p.Until("the end of newer lines", newer(lastLine(p))+" && "+atEnd)
}

// copyDefinition: what is copied is a whole document. Registering it again changes nothing.
func copyDefinition(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	catchCopies(p)
	p.Click("button", "Copy")
	p.Until("the copy", `window.copied`)
	var copied string
	p.Eval(`window.copied`, &copied)

	before := definitions(t, f, "ticker")
	f.Define(t, copied)
	after := definitions(t, f, "ticker")
	if len(before) != 2 || len(after) != 2 {
		t.Fatalf("definitions before %+v, after %+v", before, after)
	}
	for i := range before {
		if before[i].Digest != after[i].Digest {
			t.Errorf("the copied definition is another one: %s, was %s", after[i].Document, before[i].Document)
		}
	}
}

// takeTheirs: the second of two editors drops its own change for that of the first, and goes on from there.
func takeTheirs(t *testing.T, f *console.Fleet, one, two *console.Page) {
	t.Helper()
	for _, p := range []*console.Page{one, two} {
		p.Go("/console/process/default/edited")
		p.Click("link", "Edit")
		p.Wait("textbox", "Command")
	}
	two.Fill("Command", fmt.Sprintf(ticker, "dropped"))
	one.Fill("Command", fmt.Sprintf(ticker, "theirs"))
	one.Click("button", "Show what changes")
	one.Click("button", "Save")
	one.WaitText("default/edited is saved")

	// The form has their definition, so there is nothing to save.
	two.WaitText("Another person changed this definition meanwhile")
	two.Click("button", "Take theirs")
	two.WaitNoText("Another person changed this definition meanwhile")
	two.Until("their command", `document.querySelector("[name=command]").value.includes("of theirs")`)
	two.Until("nothing to save", `[...document.querySelectorAll("button")].some((b) =>
		b.innerText === "Show what changes" && b.disabled)`)
	if d := definitions(t, f, "edited"); len(d) != 1 || !strings.Contains(string(d[0].Document), "of theirs") {
		t.Fatalf("definitions %+v", d)
	}

	// A change after it is saved without a conflict, on top of theirs.
	two.Click("button", "YAML")
	two.Until("their text", `document.querySelector("#definition-yaml")?.value.includes("of theirs")`)
	var text string
	two.Eval(`document.querySelector("#definition-yaml").value`, &text)
	two.Fill("YAML", text+"labels: {kept: both}\n")
	two.Click("button", "Show what changes")
	two.Click("button", "Save")
	two.WaitText("default/edited is saved")
	d := definitions(t, f, "edited")
	if len(d) != 1 || !strings.Contains(string(d[0].Document), "of theirs") ||
		!strings.Contains(string(d[0].Document), "kept") {
		t.Errorf("definitions %+v", d)
	}
}

// definitions are the definitions of a name on all hosts.
func definitions(t *testing.T, f *console.Fleet, name string) []client.Definition {
	t.Helper()
	page, err := f.Client.Definitions(t.Context(), client.ProcessQuery{Names: []string{name}}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	return page.Definitions
}

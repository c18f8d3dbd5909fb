package topology

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard/internal/mako"
)

// maxHelpHosts limits how many hosts the help of a template lists.
const maxHelpHosts = 100

// AddHelp gives a template the variable HELP: a text with all variables and their values for this instance. Only previews
// have it.
func AddHelp(c *mako.Context) {
	var b strings.Builder
	title(&b, "*", "NOW: "+c.Now.Format("2006-01-02 15:04:05.000000"))

	title(&b, "*", "Variables")
	for _, name := range c.Globals {
		if v, plain := c.Values[name]; plain {
			fmt.Fprintf(&b, "${ %s } = %s\n", name, mako.Text(v))
		}
	}

	title(&b, "*", "this")
	for _, level := range []struct {
		name string
		of   *mako.Element
	}{{"this.cc_set", c.This.Set}, {"this.cc_module", c.This.Module}, {"this.cc_host", c.This.Host}} {
		title(&b, "=", level.name)
		for _, a := range level.of.Attributes {
			fmt.Fprintf(&b, "${ %s.attrib[\"%s\"] } = %s\n", level.name, a.Name, a.Value)
		}
	}

	title(&b, "*", "cc")
	b.WriteString("% for host in cc.findall('.//Host'):\n    ${host.attrib['InnerIP']}\n% endfor\n\n")
	helpHosts(&b, c.Tree)

	c.Values["HELP"] = mako.String(b.String())
	c.Globals = append(c.Globals, "HELP")
}

// title writes a line between two rules.
func title(b *strings.Builder, sign, text string) {
	if sign == "*" {
		text = "* " + text + " *"
	}
	rule := strings.Repeat(sign, len([]rune(text)))
	fmt.Fprintf(b, "\n%s\n%s\n%s\n\n", rule, text, rule)
}

// helpHosts writes the addresses of the hosts in a tree.
func helpHosts(b *strings.Builder, root *mako.Element) {
	hosts := 0
	for _, set := range root.Children {
		for _, module := range set.Children {
			for _, host := range module.Children {
				if hosts++; hosts > maxHelpHosts {
					continue
				}
				address, _ := host.Get("InnerIP")
				b.WriteString("    " + address + "\n")
			}
		}
	}
	if hosts > maxHelpHosts {
		b.WriteString("    …\n")
	}
}

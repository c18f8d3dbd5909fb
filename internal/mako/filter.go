package mako

import (
	"net/url"
	"strings"

	"go.starlark.net/starlark"
)

// makoFilters has the filters of Mako by name. The filter n only says that str is not applied.
var makoFilters = map[string]func(string) (string, error){
	"h":       func(s string) (string, error) { return htmlEscape.Replace(s), nil },
	"x":       func(s string) (string, error) { return htmlEscape.Replace(s), nil },
	"u":       func(s string) (string, error) { return url.QueryEscape(s), nil },
	"trim":    func(s string) (string, error) { return strings.TrimSpace(s), nil },
	"str":     func(s string) (string, error) { return s, nil },
	"unicode": func(s string) (string, error) { return s, nil },
	"n":       func(s string) (string, error) { return s, nil },
	"entity": func(string) (string, error) {
		return "", raise("NotImplementedError", "the filter entity is not supported")
	},
}

var htmlEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func kernelFilter(c *call) (Value, error) {
	text, ok := c.args[1].(starlark.String)
	if name := str(c.args[0]); !ok && (name == "str" || name == "unicode") {
		return makeStr(&call{name: "str", thread: c.thread, run: c.run, args: c.args[1:]})
	}
	if !ok {
		return nil, raise("AttributeError", "'%s' object has no attribute 'strip'", typeName(c.args[1]))
	}
	if err := c.run.spendEach(len(text), 2); err != nil {
		return nil, err
	}
	out, err := makoFilters[str(c.args[0])](string(text))
	if err != nil {
		return nil, err
	}
	return starlark.String(out), c.run.spend(len(out))
}

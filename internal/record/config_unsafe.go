package record

import (
	"regexp"

	"github.com/gozzard/gozzard"
)

// The checker of templates says in the words of GSEKit what it rejects, and its callers get that as it is.
var (
	unparsed        = regexp.MustCompile(`(?s)^mako解析失败, (.*)$`)
	unsafeTag       = regexp.MustCompile(`^不支持\[(.*)\]节点$`)
	unsafeImport    = regexp.MustCompile(`^发现非法导入:\[(.*)\]，请修改$`)
	unsafeName      = regexp.MustCompile(`^发现非法名称使用:\[(.*)\]，请修改$`)
	unsafeAttribute = regexp.MustCompile(`^发现非法属性使用:\[(.*)\]，请修改$`)
)

// UnsafeError is what callers of the native API get for a message of the checker of templates.
func UnsafeError(message string) error {
	what := func(form *regexp.Regexp) string {
		if m := form.FindStringSubmatch(message); m != nil {
			return m[1]
		}
		return ""
	}
	if text := what(unparsed); text != "" {
		return gozzard.Errorf(gozzard.ErrInvalid, "the template has a syntax error: %s", text)
	}
	if tag := what(unsafeTag); tag != "" {
		return gozzard.Errorf(gozzard.ErrInvalid, "tags of the kind %s are not allowed in a template", tag)
	}
	if name := what(unsafeImport); name != "" {
		return gozzard.Errorf(gozzard.ErrInvalid, "importing %s is not allowed in a template", name)
	}
	if name := what(unsafeName); name != "" {
		return gozzard.Errorf(gozzard.ErrInvalid, "the name %s is not allowed in a template", name)
	}
	if name := what(unsafeAttribute); name != "" {
		return gozzard.Errorf(gozzard.ErrInvalid, "the attribute %s is not allowed in a template", name)
	}
	return gozzard.Errorf(gozzard.ErrInvalid, "%s", message)
}

package policy

import (
	"slices"
	"strings"
)

// NamespaceRule says which accounts the processes of some namespaces may use.
type NamespaceRule struct {
	Pattern string   // of namespaces, with * and ?
	Users   []string // as in users of the policy; root only if it is named
}

// otherNamespaces is the pattern for the namespaces that no other pattern matches.
const otherNamespaces = "*"

// namespace checks whether the processes of a namespace may use an account. Without the setting, every namespace may
// use every account that the other settings allow.
func (p *Policy) namespace(name string, acct account) error {
	if p.Namespaces == nil {
		return nil
	}

	// Ask all patterns that match. The pattern for the rest counts only if no other one matches.
	matched := false
	for _, r := range p.Namespaces {
		if r.Pattern == otherNamespaces || !matchText(r.Pattern, name) {
			continue
		}
		if matched = true; r.allows(acct) {
			return nil
		}
	}
	if !matched {
		for _, r := range p.Namespaces {
			if r.Pattern == otherNamespaces && r.allows(acct) {
				return nil
			}
		}
	}

	return p.reject(setNamespaces, "account %s for namespace %s", shown(acct.name), shown(name))
}

// allows reports whether a rule lists an account. * and groups do not include root.
func (r NamespaceRule) allows(acct account) bool {
	if acct.root {
		return slices.Contains(r.Users, "root") || slices.Contains(r.Users, acct.name)
	}
	return slices.ContainsFunc(r.Users, acct.matches)
}

// matchText reports whether a text matches a pattern in which * is any text and ? is any one character.
func matchText(pattern, text string) bool {
	star, mark := -1, 0 // the last *, and where the text that it stands for ends
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// namespaceText describes the rules in one line.
func (p *Policy) namespaceText() string {
	if p.Namespaces == nil {
		return ""
	}
	rules := list(p.Namespaces, func(r NamespaceRule) string {
		return shown(r.Pattern) + " as " + strings.ReplaceAll(list(r.Users, itself), ", ", " or ")
	})
	return "; namespaces: " + rules
}

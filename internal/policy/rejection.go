package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// rejection is the reasons for which a policy rejects something. Its text names all of them, and the lines that would
// allow it.
type rejection struct {
	p       *Policy
	reasons []reason
}

// reason is one setting that does not allow something.
type reason struct {
	setting string
	text    string // such as "account www-data"
	why     string // in addition to the setting; "" if there is nothing to add
	add     string // what the setting would have to contain; "" if a person has to decide
	flag    string // of gozzard agent policy, if that adds it
	instead string // what the caller can do without a change of the policy; "" if there is nothing
}

// Error implements error. It is one line, because it is shown in lists.
func (r *rejection) Error() string {
	texts := make([]string, len(r.reasons))
	for i, one := range r.reasons {
		texts[i] = one.says(r.p.file)
	}

	// Name the safer ways first: they need no change of the policy.
	text, otherwise := "permission: "+strings.Join(texts, "; "), ""
	for _, way := range r.ways() {
		text, otherwise = text+"; "+way, "otherwise, "
	}

	// Name the command that allows it, and the lines for what no command allows.
	command, lines := r.p.command(r.flags()), strings.Join(r.lines(r.hasFlag), " and ")
	if command != "" {
		text += "; " + otherwise + "to allow it, the owner of the host runs: " + command
	}
	switch {
	case lines == "":
	case command != "":
		text += "; and writes into this file: " + lines
	default:
		text += "; " + otherwise + "to allow it, the owner of the host writes into this file: " + lines
	}
	return text
}

// lines are the settings that would allow what was rejected, in the order of their reasons, without those that skip names.
func (r *rejection) lines(skip func(reason) bool) (lines []string) {
	var seen []string
	for _, one := range r.reasons {
		if one.add == "" || skip(one) || slices.Contains(seen, one.setting) {
			continue
		}
		seen = append(seen, one.setting)
		var add []string
		for _, other := range r.reasons {
			if other.setting == one.setting && other.add != "" && !slices.Contains(add, other.add) {
				add = append(add, other.add)
			}
		}
		lines = append(lines, r.p.line(one.setting, add))
	}
	return lines
}

// line is a setting of the policy with values added.
func (p *Policy) line(setting string, add []string) string {
	quote := func(s string) string { return strconv.Quote(s) }
	switch setting {
	case setUsers:
		return setting + ": [" + list(append(slices.Clone(p.Users), add...), quote) + "]"
	case setPathPrefixes:
		return setting + ": [" + list(append(slices.Clone(p.PathPrefixes), add...), quote) + "]"
	case setFiles:
		return p.fileLine(add)
	case setScripts:
		return p.scriptLine(add)
	case setDenyUIDs:
		ranges := p.DenyUIDs
		for _, text := range add {
			if uid, err := strconv.ParseUint(text, 10, 32); err == nil {
				ranges = without(ranges, uint32(uid))
			}
		}
		return setting + ": " + strconv.Quote(rangesText(ranges))
	case setOps:
		ops := list(p.Ops, gozzard.Action.String)
		if len(p.Ops) == 0 {
			ops = ""
		}
		return setting + ": [" + strings.TrimPrefix(ops+", "+strings.Join(add, ", "), ", ") + "]"
	}
	return setting + ": " + add[len(add)-1]
}

// without removes one number from ranges.
func without(ranges []UIDRange, uid uint32) (out []UIDRange) {
	for _, r := range ranges {
		if uid < r.First || uid > r.Last {
			out = append(out, r)
			continue
		}
		if r.First < uid {
			out = append(out, UIDRange{r.First, uid - 1})
		}
		if uid < r.Last {
			out = append(out, UIDRange{uid + 1, r.Last})
		}
	}
	return out
}

// rangesText is ranges as the file has them.
func rangesText(ranges []UIDRange) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = strconv.FormatUint(uint64(r.First), 10)
		if r.Last > r.First {
			texts[i] += "-" + strconv.FormatUint(uint64(r.Last), 10)
		}
	}
	return strings.Join(texts, ",")
}

// reject makes the error of a rejection.
func (p *Policy) reject(setting, format string, args ...any) error {
	return p.rejectBecause(setting, "", format, args...)
}

// rejectBecause makes the error of a rejection that has a reason in addition to its setting.
func (p *Policy) rejectBecause(setting, why, format string, args ...any) error {
	return &rejection{p, []reason{{setting: setting, why: why, text: fmt.Sprintf(format, args...)}}}
}

// allowedBy adds to a rejection what its setting would have to contain. A text that would need quotes or cuts in a line
// of a message is left out: a person has to look at it.
func allowedBy(err error, add string) error {
	var r *rejection
	if errors.As(err, &r) && len(r.reasons) == 1 && quoted(add) == add {
		r.reasons[0].add = add
	}
	return err
}

// instead adds to a rejection what the caller can do without a change of the policy.
func instead(err error, text string) error {
	var r *rejection
	if errors.As(err, &r) && len(r.reasons) == 1 {
		r.reasons[0].instead = text
	}
	return err
}

// otherAccount is the safer way when an account is rejected because it can do too much.
const otherAccount = "choose another account: user in the definition, or --user NAME of gozzard run"

// otherOwner is the same for the account of a file.
const otherOwner = "choose another account: owner of the template, or --account NAME of gozzard file"

// inFile makes the safer way of a rejected account that of a file.
func inFile(err error) error {
	var r *rejection
	if errors.As(err, &r) {
		for i := range r.reasons {
			if r.reasons[i].instead == otherAccount {
				r.reasons[i].instead = otherOwner
			}
		}
	}
	return err
}

// noAccount says why an account cannot be allowed.
const noAccount = "this host has no such account"

// together is one rejection with the reasons of several, nil if there is none. An error of another kind goes first and
// alone.
func together(errs ...error) error {
	var all *rejection
	for _, err := range errs {
		var r *rejection
		switch {
		case err == nil:
			continue
		case !errors.As(err, &r):
			return err
		case all == nil:
			all = &rejection{p: r.p}
		}
		all.reasons = append(all.reasons, r.reasons...)
	}
	if all == nil {
		return nil
	}
	return all
}

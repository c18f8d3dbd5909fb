package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Refusal is why a policy rejects something, in parts, for a program that prints them in its own order.
type Refusal struct {
	Reasons []string // one for each setting
	Ways    []string // what the caller can do without a change of the policy
	Flags   []string // of gozzard agent policy, that allow it
	Lines   []string // of the policy file, that allow what no flag allows
}

// Explain takes the error of a rejection apart. It is nil for other errors.
func Explain(err error) *Refusal {
	var r *rejection
	if !errors.As(err, &r) {
		return nil
	}
	out := &Refusal{Ways: r.ways(), Flags: r.flags(), Lines: r.lines(r.hasFlag)}
	for _, one := range r.reasons {
		out.Reasons = append(out.Reasons, one.says(r.p.file))
	}
	return out
}

// says is one reason in words.
func (one *reason) says(file string) string {
	text := fmt.Sprintf("%s is not allowed by local policy (%s in %s)", one.text, one.setting, file)
	if one.why != "" {
		text += ": " + one.why
	}
	return text
}

// ways are what the caller can do without a change of the policy.
func (r *rejection) ways() (ways []string) {
	for _, one := range r.reasons {
		if one.instead != "" && !slices.Contains(ways, one.instead) {
			ways = append(ways, one.instead)
		}
	}
	return ways
}

// flags are those of gozzard agent policy that allow what was rejected, as far as there are some.
func (r *rejection) flags() (flags []string) {
	for _, one := range r.reasons {
		if r.hasFlag(one) && !slices.Contains(flags, one.flag) {
			flags = append(flags, one.flag)
		}
	}
	return flags
}

// hasFlag reports whether gozzard agent policy allows what was rejected. It needs a file.
func (r *rejection) hasFlag(one reason) bool {
	return one.flag != "" && filepath.IsAbs(r.p.file) && isPlain(r.p.file)
}

// command is gozzard agent policy with flags, "" if there are none.
func (p *Policy) command(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return Command(p.file, flags)
}

// Command is the command that changes a policy file.
func Command(file string, flags []string) string {
	return "gozzard agent policy --policy " + file + " " + strings.Join(flags, " ")
}

// byFlag adds to a rejection the flag of gozzard agent policy that allows it. The value may be from a caller, and a person
// gives the command to a shell: it must mean nothing there. A comma would make two values of it.
func byFlag(err error, flag, value string) error {
	var r *rejection
	if !errors.As(err, &r) || len(r.reasons) != 1 || r.reasons[0].add == "" || !isPlain(value) || strings.Contains(value, ",") {
		return err
	}
	r.reasons[0].flag = strings.TrimSpace(flag + " " + value)
	return err
}

// otherFolder is the safer way when a folder is rejected, if the policy allows some folder.
func (p *Policy) otherFolder() string {
	if len(p.PathPrefixes) == 0 || slices.Contains(p.PathPrefixes, rootFolder()) {
		return ""
	}
	return "choose a folder below " + list(p.PathPrefixes, quoted) + ": folder in the definition, or --dir FOLDER of gozzard run"
}

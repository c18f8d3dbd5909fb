package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/specjson"
)

// printRefusals compares the definitions with what the agent accepts, before anything is registered or given up: a process
// that is taken over and cannot be started again would be lost at its next restart. It prints every reason and what to do.
// refused is the error of a move that must not begin.
func (m *move) printRefusals() (refused, err error) {
	bounds, err := agentd.FindBounds(m.status)
	if err != nil {
		return nil, failed(fmt.Errorf("cannot find out what the agent of this host allows: %w", err))
	}

	// Look at each definition.
	var flags, lines []string
	count := 0
	for _, a := range m.list {
		if err := m.chooseFolder(bounds, a); err != nil {
			return nil, err
		}
		spec, err := a.Spec()
		if err != nil {
			return nil, failed(err)
		}
		r := bounds.Check(a.Namespace, spec)
		if r == nil {
			continue
		}
		count++
		flags, lines = append(flags, r.Flags...), append(lines, r.Lines...)
		for _, reason := range r.Reasons {
			if err := m.env.say("the agent would refuse %s/%s: %s\n", a.Namespace, a.Name, printable(m.env.chinese.Message(reason))); err != nil {
				return nil, err
			}
		}
		if r.Limits && m.format.units {
			if err := m.env.say("to lower a limit of %s: systemctl edit %s\n", a.Name, a.Source); err != nil {
				return nil, err
			}
		}
	}
	if count == 0 {
		return nil, nil
	}

	// Say what allows them.
	if flags = once(flags); len(flags) > 0 {
		if err := m.env.say("to allow it, if you want that: %s\n", printable(bounds.Command(flags))); err != nil {
			return nil, err
		}
	}
	for _, line := range once(lines) {
		if err := m.env.say("to allow it, if you want that, write into %s: %s\n", bounds.File(), printable(line)); err != nil {
			return nil, err
		}
	}
	return failed(fmt.Errorf("the agent of this host would refuse %d of %d processes, for the reasons above; nothing was changed", count,
		len(m.list))), nil
}

// once is a list without what is in it already.
func once(all []string) (list []string) {
	for _, s := range all {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// chooseFolder gives a definition without a folder another one than /, if the policy does not allow that: where the process
// keeps its data, or else a folder that is allowed. What runs in / without being told so does not rely on its folder.
func (m *move) chooseFolder(bounds *agentd.Bounds, a *adopted) error {
	isFolder := func(f specjson.Field) bool { return f.Key == "folder" }
	if !m.format.units || bounds.Allows("/") || slices.ContainsFunc(a.Fields, isFolder) {
		return nil
	}
	own := slices.DeleteFunc(append(slices.Clone(a.Folders), homeOf(a)), func(folder string) bool { return !isDir(folder) })
	candidates := append(slices.DeleteFunc(slices.Clone(own), func(folder string) bool { return !bounds.Allows(folder) }), own...)
	for _, folder := range append(candidates, bounds.Folders()...) {
		if !isDir(folder) {
			continue
		}
		a.Fields = append(a.Fields, specjson.Field{Key: "folder", Value: folder})
		return m.env.say("folder of %s/%s: %s, because the policy does not allow /; for another one, set WorkingDirectory= with "+
			"systemctl edit %s\n", a.Namespace, a.Name, folder, a.Source)
	}
	return nil
}

// homeOf is the home folder of the account of a process, if it belongs to that account. Root has none for this.
func homeOf(a *adopted) string {
	i := slices.IndexFunc(a.Fields, func(f specjson.Field) bool { return f.Key == "user" })
	if i < 0 {
		return ""
	}
	name, _ := a.Fields[i].Value.(string)
	u, err := user.Lookup(name)
	if err != nil || u.Uid == "0" {
		return ""
	}
	info, err := os.Stat(u.HomeDir)
	if err != nil {
		return ""
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || strconv.FormatUint(uint64(owner.Uid), 10) != u.Uid {
		return ""
	}
	return filepath.Clean(u.HomeDir)
}

// isDir reports whether a folder exists and can be one of a definition.
func isDir(folder string) bool {
	info, err := os.Stat(folder)
	return filepath.IsAbs(folder) && folder != "/" && err == nil && info.IsDir()
}

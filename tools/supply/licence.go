package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed are the kinds of licences under which a module may be built into a program under Apache-2.0 without
// conditions on the program itself.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// kinds identifies licences by sentences that no other licence has, in the form that plain returns. One text can hold
// several licences.
var kinds = []struct {
	id      string
	has     []string
	without string
}{
	{"Apache-2.0", []string{"apache license version 2 0 january 2004",
		"terms and conditions for use reproduction and distribution"}, ""},
	{"MIT", []string{"permission is hereby granted free of charge to any person obtaining a copy",
		"this permission notice shall be included in all copies"}, ""},
	{"MIT-0", []string{"permission is hereby granted free of charge to any person obtaining a copy"},
		"this permission notice shall be included in all copies"},
	{"BSD-4-Clause", []string{"redistribution and use in source and binary forms", "all advertising materials"}, ""},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms",
		"endorse or promote products derived from"}, "all advertising materials"},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms",
		"redistributions in binary form must reproduce"}, "endorse or promote products derived from"},
	{"ISC", []string{"permission to use copy modify and or distribute this software for any purpose with or without fee is hereby granted"}, ""},
	{"MPL-2.0", []string{"mozilla public license version 2 0"}, ""},
	{"AGPL-3.0", []string{"gnu affero general public license version 3"}, ""},
	{"LGPL", []string{"gnu lesser general public license version"}, ""},
	{"GPL", []string{"gnu general public license version"}, ""},
	{"EPL", []string{"eclipse public license"}, ""},
	{"SSPL-1.0", []string{"server side public license"}, ""},
	{"BUSL-1.1", []string{"business source license"}, ""},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, ""},
	{"CC0-1.0", []string{"cc0 1 0 universal"}, ""},
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// plain is a text without what differs between copies of one licence: case, breaks, signs.
func plain(text string) string {
	return notWord.ReplaceAllString(strings.ToLower(text), " ")
}

// classify names the licences in a text, none when it knows none.
func classify(text string) []string {
	p := plain(text)
	var ids []string
	for _, k := range kinds {
		if slices.ContainsFunc(k.has, func(s string) bool { return !strings.Contains(p, s) }) || k.without != "" &&
			strings.Contains(p, k.without) {
			continue
		}
		ids = append(ids, k.id)
	}
	return ids
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.(txt|md))?$`)
	asideName   = regexp.MustCompile(`(?i)^((licen[cs]e|copying)[-._].*|notice(\..*)?|patents(\..*)?)$`)
	otherNames  = regexp.MustCompile(`(?i)3rd|third`)
)

// isLicence: the file is the licence of what lies beside and below it.
func isLicence(name string) bool { return licenceName.MatchString(name) }

// isAside: the file goes with a licence: notices, licences of parts.
func isAside(name string) bool { return asideName.MatchString(name) && !isLicence(name) }

// isOthers: the file lists licences of other modules, those of its tests among them; what is built in of these is
// judged by itself.
func isOthers(name string) bool { return isAside(name) && otherNames.MatchString(name) }

// licences names the licences of a module. Every licence file must be known and allowed; a file beside it may be
// unknown, but not forbidden.
func (m *module) licences() (ids []string, err error) {
	own := false
	for _, file := range m.sortedFiles() {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a licence of %s: %w", m.Path, err)
		}
		found, isMain := classify(string(text)), isLicence(filepath.Base(file))
		own = own || isMain
		if isMain && len(found) == 0 {
			return nil, fmt.Errorf("the licence of %s is of no known kind: %s", m.Path, file)
		}
		if isOthers(filepath.Base(file)) {
			continue
		}
		for _, id := range found {
			if !slices.Contains(allowed, id) && (isMain || id != "CC0-1.0" && id != "Unlicense") {
				return nil, fmt.Errorf("%s is under %s, which is not allowed: %s", m.Path, id, file)
			}
			if isMain && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}

	if !own {
		return nil, fmt.Errorf("%s has no licence in %s", m.Path, m.Dir)
	}

	slices.Sort(ids)
	return ids, nil
}

func listLicences(out io.Writer, platforms []string, pkg string) error {
	all, err := modules(platforms, pkg)
	if err != nil {
		return err
	}

	var bad []error
	for _, m := range all {
		ids, err := m.licences()
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if _, err := fmt.Fprintf(out, "%-27s %s %s\n", strings.Join(ids, " AND "), m.Path, m.Version); err != nil {
			return err
		}
	}

	if len(bad) > 0 {
		return errors.Join(bad...)
	}

	_, err = fmt.Fprintf(out, "licences: %d modules, all of %s\n", len(all), strings.Join(allowed, ", "))
	return err
}

// printTexts prints what the licences ask to be given along with the program.
func printTexts(out io.Writer, platforms []string, pkg string) error {
	all, err := modules(platforms, pkg)
	if err != nil {
		return err
	}

	for _, m := range all {
		if _, err := m.licences(); err != nil {
			return err
		}
		for _, file := range m.sortedFiles() {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("cannot read a licence of %s: %w", m.Path, err)
			}
			name, err := filepath.Rel(m.Dir, file)
			if err != nil {
				return fmt.Errorf("cannot name a licence of %s: %w", m.Path, err)
			}
			if _, err := fmt.Fprintf(out, "%s\n%s %s: %s\n\n%s\n\n", strings.Repeat("=", 100), m.Path, m.Version,
				filepath.ToSlash(name), strings.TrimSpace(string(text))); err != nil {
				return err
			}
		}
	}

	return nil
}

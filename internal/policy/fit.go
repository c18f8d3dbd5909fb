package policy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// ErrChanged is the error of Fit for a policy that a person has changed.
var ErrChanged = errors.New("the policy of this host does not allow what was asked for, and a person has changed it")

// Fit makes the policy of a host fit a choice. It writes a policy where there is none, and extends one that no person
// has changed. A policy that a person has changed is never changed: the error has the lines that are missing.
func Fit(path string, c Choice) (made bool, err error) {
	if made, err = Create(path, c); made || err != nil {
		return made, err
	}

	// Find what is missing.
	b, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("cannot read the policy of this host: %w", err)
	}
	p, err := Parse(path, b)
	if err != nil {
		return false, err
	}
	missing := c.Missing(p)
	if len(missing) == 0 {
		return false, nil
	}

	// Extend what Create or Fit has written. What was allowed stays allowed.
	before := c.before(p)
	if !before.wrote(string(b)) {
		return false, fmt.Errorf("%w: write these lines into %s:\n%s", ErrChanged, path, strings.Join(missing, "\n"))
	}
	return true, atomicfile.Write(path, []byte(before.with(c).written()))
}

// before is the choice that would make a policy, for the same agent. Only if its text is that of the file, no person
// has changed the file.
func (c Choice) before(p *Policy) Choice {
	out := Choice{AllowRoot: p.AllowRoot, Default: p.DefaultUser, Own: c.Own, OwnUID: c.OwnUID, Texts: c.Texts}
	first := Default()
	for _, name := range p.Users {
		if !slices.Contains(first.Users, name) && name != c.Own {
			out.Users = append(out.Users, name)
		}
	}
	for _, path := range p.PathPrefixes {
		if !slices.Contains(first.PathPrefixes, path) {
			out.Paths = append(out.Paths, path)
		}
	}
	out.Files = slices.Clone(p.Files.Paths)
	return out
}

// written is the content of the policy in the language of the person that asks for it.
func (c Choice) written() string {
	if len(c.Texts) == 0 {
		return c.text()
	}
	return c.Texts[0](c.text())
}

// wrote reports whether Create or Fit wrote a policy, in any of the languages.
func (c Choice) wrote(policy string) bool {
	text := c.text()
	return policy == text || slices.ContainsFunc(c.Texts, func(in func(string) string) bool { return policy == in(text) })
}

// with is a choice and what another one adds to it.
func (c Choice) with(more Choice) Choice {
	c.AllowRoot = c.AllowRoot || more.AllowRoot
	if more.Default != "" {
		c.Default = more.Default
	}
	c.Users = append(slices.Clone(c.Users), more.Users...)
	c.Paths = append(slices.Clone(c.Paths), more.Paths...)
	for _, path := range more.Files {
		if !slices.Contains(c.Files, path) {
			c.Files = append(slices.Clone(c.Files), path)
		}
	}
	return c
}

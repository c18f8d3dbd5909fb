package configfile

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/record"
)

// fieldNames are what a caller calls the fields of a template.
type fieldNames struct{ folder, mode, lineEnds string }

var (
	contractFields = fieldNames{"abs_path", "filemode", "line_separator"}
	documentFields = fieldNames{"folder", "mode", "line_ends"}
)

// templateFaults are all faults in the texts of a template: the first one of each field.
func templateFaults(t *record.ConfigTemplate, names *fieldNames) (faults []error) {
	wrong := map[string]bool{}
	for _, x := range []struct {
		name, text string
		most       int
		blanks     bool
	}{
		{"name", t.Name, maxName, false}, {"file_name", t.FileName, maxName, false}, {"owner", t.Owner, maxText, false},
		{"group", t.Group, maxText, false}, {names.folder, t.Path, maxPath, true}, {names.mode, t.Mode, maxText, true},
		{names.lineEnds, t.LineSeparator, maxText, true},
	} {
		if err := checkText(x.name, x.text, x.most, x.blanks); err != nil {
			faults, wrong[x.name] = append(faults, err), true
		}
	}

	// A mode, an owner and a group with which no host would write a file.
	if _, err := gozzard.ParseFileMode(t.Mode); err != nil && !wrong[names.mode] {
		faults = append(faults, fault(record.ConfigBadMode, t.Mode, gozzard.Errorf(gozzard.ErrInvalid, "%v", err)))
	}
	for _, x := range []struct{ name, text string }{{"owner", t.Owner}, {"group", t.Group}} {
		if err := gozzard.ValidateName(x.text); err != nil && !wrong[x.name] {
			faults = append(faults, fault(record.ConfigBadAccount, x.text,
				gozzard.Errorf(gozzard.ErrInvalid, "%s cannot be the name of an account or a group: %v", x.name, err)))
		}
	}
	return faults
}

func checkText(name, text string, most int, blanks bool) error {
	switch {
	case text == "" || len(text) > most:
		return gozzard.Errorf(gozzard.ErrInvalid, "%s must have 1 to %d bytes, has %d", name, most, len(text))
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return gozzard.Errorf(gozzard.ErrInvalid, "%s must be text in UTF-8 without NUL characters", name)
	case !blanks && strings.ContainsFunc(text, unicode.IsSpace):
		return fault(record.ConfigBlank, name, gozzard.Errorf(gozzard.ErrInvalid, "%s must have no blanks and no other white space", name))
	}
	return nil
}

// checkWanted checks a document. It finds the faults of all fields, so that nobody has to apply it once for each.
func checkWanted(want *record.ConfigWanted, version *record.ConfigVersion) error {
	faults := templateFaults(&want.Template, &documentFields)
	if err := checkVersion(version); err != nil {
		faults = append(faults, err)
	}
	if strings.Contains(want.Content, help) {
		faults = append(faults, fault(record.ConfigHelpInside, "", gozzard.Errorf(gozzard.ErrInvalid, "%s is for previews only: remove it", help)))
	}
	if err := mako.Check(mako.Blanks(want.Content)); err != nil {
		faults = append(faults, renderFault(err))
	}

	switch len(faults) {
	case 0:
		return nil
	case 1:
		return faults[0]
	}
	all := &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the document has faults; nothing was changed"}
	for _, err := range faults {
		text := err.Error()
		if e := (*gozzard.Error)(nil); errors.As(err, &e) {
			text = e.Message
		}
		all.Faults = append(all.Faults, gozzard.Fault{Text: text})
	}
	return all
}

package record

import "github.com/gozzard/gozzard/internal/topology"

// ConfigListed is a template with how it is used.
type ConfigListed struct {
	ConfigTemplate
	ConfigUse
	Fixed bool // it is in the topology document
}

// IsBound reports whether it is bound to something.
func (t *ConfigListed) IsBound() bool { return t.Bound[ConfigOfProcess]+t.Bound[ConfigOfTemplate] > 0 }

// ConfigPlaced is a file of a process instance, rendered or not.
type ConfigPlaced struct {
	Row      *topology.Row
	Inst     topology.RowInstance
	Template *ConfigListed
	Active   int64           // the active version of the template; 0: none
	Latest   *ConfigInstance // nil: nothing was rendered
	Released *ConfigInstance // nil: nothing was released
}

// ConfigNewest is what there is of one file of a process instance.
type ConfigNewest struct {
	Latest   *ConfigInstance // nil: nothing was rendered
	Released *ConfigInstance // nil: nothing was released
	Current  bool            // Latest is of the active version
	Live     *ConfigSnapshot // what the host had in place of Released when it was compared; nil: that was not done, or it was equal
}

// ConfigFault is an error about configuration files that callers of GSEKit know by a number.
type ConfigFault struct {
	Kind ConfigFaultKind
	Name string // of the template that it is about, or the text of the error where the kind says so
	Err  error  // for all other callers

	Line   int    // of the template, for ConfigUnrendered; 0: the whole of it
	Source string // the text of that line
	Hint   string // more about it for people; may be ""
}

// ConfigFaultKind is a kind of error.
type ConfigFaultKind uint8

// The kinds of errors.
const (
	ConfigNoTemplate ConfigFaultKind = iota + 1
	ConfigNoVersion
	ConfigDraftExists
	ConfigNoInstance
	ConfigSameName
	ConfigUnsafe // the checker of templates rejects the content: Name is its message
	ConfigHelpInside
	ConfigBothStates // a version cannot be draft and active, or neither
	ConfigBlank      // a name has a blank or another white space
	ConfigBadMode    // Name cannot be the mode of a file
	ConfigBadAccount // Name cannot be the name of an account or a group
	ConfigNoActive
	ConfigNoInclude
	ConfigNoProcess
	ConfigNoProcessInstance
	ConfigUnrendered // a template cannot be rendered: Name is the message
)

// Error is the error in words.
func (f *ConfigFault) Error() string { return f.Err.Error() }

// Unwrap is the error for other callers.
func (f *ConfigFault) Unwrap() error { return f.Err }

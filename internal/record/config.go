package record

import (
	"time"

	"github.com/gozzard/gozzard/internal/topology"
)

// The limits of configuration files. They protect the record: a caller may write contents of any kind, and many of them.
const (
	MaxConfigContent   = 1 << 20   // bytes of the content of a version, and of a rendered file
	MaxConfigTemplates = 2_000     // of one business
	MaxConfigVersions  = 200       // of one template: older ones are removed
	MaxConfigBytes     = 256 << 20 // of the contents of all versions of one business
	MaxConfigBindings  = 10_000    // of one template
	MaxConfigKept      = 10        // rendered files of one process instance and template: older ones are removed
	MaxConfigRendered  = 1 << 30   // bytes of all rendered files of one business; equal files count once
)

// Trail says when and by which user something was made and last changed.
type Trail struct {
	Created   time.Time
	CreatedBy string
	Updated   time.Time
	UpdatedBy string
}

// ConfigTemplate is a configuration file that is rendered for each instance of the processes that it is bound to.
type ConfigTemplate struct {
	ID            int64 // unique within its business
	Biz           int
	Name          string // unique within its business
	FileName      string // a template, as the content is
	Path          string // of the folder; a template
	Owner         string
	Group         string
	Mode          string
	LineSeparator string
	Trail
}

// ConfigVersion is one content of a template. A template has at most one draft and one active version.
type ConfigVersion struct {
	ID          int64 // unique among all businesses
	Biz         int
	Template    int64
	Description string
	Content     string
	Draft       bool
	Active      bool
	Format      *string // the language of the content, for editors; nil: not known
	Trail
}

// ConfigObjectKind is what a template can be bound to.
type ConfigObjectKind string

// The kinds of objects: a process template of CMDB with all its processes, or a process without a template.
const (
	ConfigOfProcess  ConfigObjectKind = "INSTANCE"
	ConfigOfTemplate ConfigObjectKind = "TEMPLATE"
)

// ConfigObject is a process or a process template.
type ConfigObject struct {
	Kind ConfigObjectKind
	ID   int
}

// ConfigBinding binds a template to an object.
type ConfigBinding struct {
	ID       int64 // unique among all businesses; 0: the topology document has it
	Biz      int
	Template int64
	Object   ConfigObject
	Trail
}

// ConfigUse says how a template is used.
type ConfigUse struct {
	Bound    map[ConfigObjectKind]int
	Versions bool // it has one that is not a draft
	Released bool
}

// ConfigInstance is a file as it was rendered for one process instance.
type ConfigInstance struct {
	ID       int64 // unique among all businesses
	Biz      int
	Template int64
	Version  int64
	Process  int
	Inst     int
	Name     string // of the file
	Path     string // of the folder
	Hash     [32]byte
	Content  string // only where it is asked for
	Latest   bool   // the newest of its process instance and template
	Released bool   // a host has taken it
	Trail
}

// ConfigSlot names a file of a process instance.
type ConfigSlot struct {
	Template int64
	Process  int
	Inst     int
}

// Slot is the place of a rendered file.
func (c *ConfigInstance) Slot() ConfigSlot { return ConfigSlot{c.Template, c.Process, c.Inst} }

// ConfigSnapshot is what a host had in place of a released file when it was compared.
type ConfigSnapshot struct {
	ID       int64
	Biz      int
	Instance int64
	Job      int64 // that compared it
	Hash     [32]byte
	Content  string
	Created  time.Time
	Updated  time.Time
}

// JobWork is what a job does with configuration files.
type JobWork string

// The kinds of work. A job without one operates processes.
const (
	WorkNone     JobWork = ""
	WorkGenerate JobWork = "generate" // render files
	WorkRelease  JobWork = "release"  // write the newest rendered files to their hosts
	WorkDiff     JobWork = "diff"     // compare the released files with those on the hosts
)

// ConfigChoice says which files a job is about.
type ConfigChoice struct {
	Templates []int64 `json:"templates,omitempty"` // empty: all that are bound
	// Versions are by template. If the job names the template, it is only about processes with an instance that has one of these
	// released, or nothing (ConfigUnreleased).
	Versions map[int64][]int64 `json:"versions,omitempty"`
	Every    bool              `json:"every,omitempty"` // only processes that all named templates are bound to, not at least one

	// Back makes a release one of files as they were released with this version, by template. Other templates are left out.
	Back map[int64]int64 `json:"back,omitempty"`

	// Expect rejects the release of a file that has changed on its host since it was released.
	Expect bool `json:"expect,omitempty"`

	// Shown accepts with Expect also a change that a comparison has shown since the release. It is for callers that cannot say that
	// a file is to be replaced whatever it is.
	Shown bool `json:"shown,omitempty"`

	// Then is what a release does with the process instances that got another file: reload, restart, or "" for nothing.
	Then string `json:"then,omitempty"`

	// Rollout makes a release go from batch to batch; nil: all hosts at once.
	Rollout *Rollout `json:"rollout,omitempty"`

	// Stopped is the round of tasks that somebody has stopped; nil: nobody has.
	Stopped *int `json:"stopped,omitempty"`
}

// The limits of a rollout.
const (
	MaxRolloutBatch  = 100_000
	MaxRolloutWatch  = 3600
	MaxRolloutFailed = MaxJobTasks
)

// Rollout says how a release goes on from host to host.
type Rollout struct {
	Batch     int `json:"batch"`                   // hosts at a time
	Watch     int `json:"watch_seconds,omitempty"` // how long each batch is watched before the next one begins
	MaxFailed int `json:"max_failed,omitempty"`    // process instances that may fail before the rest is left as it is
}

// ConfigWanted is a template as a document has it.
type ConfigWanted struct {
	Template     ConfigTemplate
	Content      string
	Description  string         // of a new version
	Objects      []ConfigObject // what it is bound to; nil: this stays as it is
	ReplaceDraft bool           // a draft that exists becomes the new version; else it is an error
}

// ConfigApplied is what a document changed.
type ConfigApplied struct {
	Template int64    // 0: it would be a new one
	Version  int64    // that is active; 0: it would be a new one
	New      bool     // the template is new
	Changes  []string // what differs, a line for each
	Warnings []string // why a release of it would fail, a line for each
}

// ConfigRendered is a file as it would be on a host.
type ConfigRendered struct {
	Template ConfigTemplate
	Row      topology.Row
	Inst     topology.RowInstance
	Path     string // of the file
	Content  []byte // with its ends of lines
}

// ConfigUnreleased stands for the version of a file that was rendered and never released.
const ConfigUnreleased = 0

// ConfigDone is what a task of a job did with one file. A task stores a list of them as its result.
type ConfigDone struct {
	Instance     int64     `json:"instance"`
	Version      int64     `json:"version,omitempty"` // of the template; 0 in jobs of earlier releases of the program
	Template     int64     `json:"template"`
	TemplateName string    `json:"template_name"`
	Name         string    `json:"name"`
	Path         string    `json:"path"`
	Owner        string    `json:"owner,omitempty"`
	CRLF         bool      `json:"crlf,omitempty"`
	Hash         string    `json:"hash,omitempty"`
	Live         string    `json:"live,omitempty"`    // the hash of what the host has, if it was compared and differs
	Changed      bool      `json:"changed,omitempty"` // the host got another file by a release
	Reason       JobReason `json:"reason,omitempty"`
	Message      string    `json:"message,omitempty"`
}

// The reasons why a task on configuration files did not succeed.
const (
	ReasonUnbound  JobReason = "config_unbound"  // no template is bound to the process; the task is ignored
	ReasonNoActive JobReason = "config_active"   // a template has no active version: Message is its name
	ReasonRender   JobReason = "config_render"   // a template cannot be rendered: Message
	ReasonUnsafe   JobReason = "config_unsafe"   // a template has what the checker rejects: Message
	ReasonInclude  JobReason = "config_include"  // a template that is included does not exist: Message is its name
	ReasonGone     JobReason = "config_gone"     // the process is not in the business any more
	ReasonNotMade  JobReason = "config_not_made" // nothing was rendered that could be released
	ReasonWrite    JobReason = "config_write"    // the host did not take a file: Message
	ReasonAbsent   JobReason = "config_absent"   // the host does not have the file: Message is its path
	ReasonDiffers  JobReason = "config_differs"  // the host has another content
	ReasonRead     JobReason = "config_read"     // the file on the host could not be read: Message
	ReasonThen     JobReason = "config_then"     // the file was released, and what should follow failed: Message
	ReasonWatch    JobReason = "config_watch"    // the file was released, and the process did not stay well: Message
	ReasonStopped  JobReason = "config_stopped"  // a rollout stopped before it reached the host: Message
)

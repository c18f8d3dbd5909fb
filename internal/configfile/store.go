package configfile

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Store is the part of the record that holds configuration files. A change is durable when its call returns, and has an audit
// row in the same transaction. Errors are ErrNotFound for what the business does not have, ErrConflict for a name or a draft that
// exists already, ErrInvalid for what is above a limit of package record.
type Store interface {
	// ConfigTemplates lists the templates of a business by id.
	ConfigTemplates(ctx context.Context, biz int) ([]record.ConfigTemplate, error)

	// ConfigUses says how the templates of a business are used. Templates that are not used are left out.
	ConfigUses(ctx context.Context, biz int) (map[int64]record.ConfigUse, error)

	// AddConfigTemplate records a template and sets its id, which is none of those that are taken.
	AddConfigTemplate(ctx context.Context, t *record.ConfigTemplate, taken []int64, audit gozzard.AuditRow) error

	// SaveConfigTemplate replaces a template, except what its trail says about its beginning.
	SaveConfigTemplate(ctx context.Context, t record.ConfigTemplate, audit gozzard.AuditRow) error

	// RemoveConfigTemplate removes a template and its bindings. Its versions and rendered files stay.
	RemoveConfigTemplate(ctx context.Context, biz int, id int64, audit gozzard.AuditRow) error

	// ConfigVersions lists the versions of a template, newest first.
	ConfigVersions(ctx context.Context, biz int, template int64) ([]record.ConfigVersion, error)
	ConfigVersion(ctx context.Context, biz int, id int64) (record.ConfigVersion, error)

	// ActiveConfigVersions gives the id of the active version of each template that has one.
	ActiveConfigVersions(ctx context.Context, biz int) (map[int64]int64, error)

	// SaveConfigVersion replaces a version, or records a new one if its id is 0, and sets the id then. A new version needs a
	// template without a draft. If it is active, the others of its template are no longer.
	SaveConfigVersion(ctx context.Context, v *record.ConfigVersion, audit gozzard.AuditRow) error

	// ConfigBindings lists the bindings of a template by id, ConfigBindingsOf those of some objects.
	ConfigBindings(ctx context.Context, biz int, template int64) ([]record.ConfigBinding, error)
	ConfigBindingsOf(ctx context.Context, biz int, objects []record.ConfigObject) ([]record.ConfigBinding, error)

	// BindConfig makes the bindings of a template, or with template 0 those of an object, what is wanted. It answers how
	// many were removed and added.
	BindConfig(ctx context.Context, biz int, template int64, object record.ConfigObject, want []record.ConfigBinding,
		audit gozzard.AuditRow) (deleted, created int, err error)

	// AddConfigInstances records rendered files, each as the newest of its place, sets their ids, and removes old ones.
	AddConfigInstances(ctx context.Context, biz int, list []record.ConfigInstance) error

	// ConfigInstances lists the files at some places by id, without their contents. ConfigTexts has the contents by hash.
	ConfigInstances(ctx context.Context, biz int, slots []record.ConfigSlot) ([]record.ConfigInstance, error)
	ConfigInstance(ctx context.Context, biz int, id int64) (record.ConfigInstance, error)
	ConfigTexts(ctx context.Context, biz int, hashes [][32]byte) (map[[32]byte]string, error)

	// ReleaseConfigs records that hosts have taken files.
	ReleaseConfigs(ctx context.Context, biz int, ids []int64) error

	// SaveConfigSnapshot records what a host has in place of a file. ConfigSnapshot is nil if there is none.
	SaveConfigSnapshot(ctx context.Context, x *record.ConfigSnapshot) error
	ConfigSnapshot(ctx context.Context, biz int, instance int64) (*record.ConfigSnapshot, error)
}

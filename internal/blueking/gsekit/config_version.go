package gsekit

import (
	"context"

	"github.com/gozzard/gozzard/internal/record"
)

// versionInfo is one content of a template.
type versionInfo struct {
	trail
	ID          int64   `json:"config_version_id"`
	Template    int64   `json:"config_template_id"`
	Description string  `json:"description"`
	Content     string  `json:"content"`
	Draft       bool    `json:"is_draft"`
	Active      bool    `json:"is_active"`
	Format      *string `json:"file_format"`
}

func versionOf(v *record.ConfigVersion) versionInfo {
	return versionInfo{trail: trailOf(&v.Trail, utc()), ID: v.ID, Template: v.Template, Description: v.Description,
		Content: v.Content, Draft: v.Draft, Active: v.Active, Format: v.Format}
}

// versionID is the id of the version in the path.
func (r *request) versionID() int64 { return r.pathInt(r.Call, "config_version_id") }

// format reads the language of a content, which editors use; nil if it is not given.
func (f *form) format() *string {
	if v := f.get("file_format"); v.IsNull() {
		return nil
	}
	if s, given := opt(f, "file_format", text); given {
		return &s
	}
	return nil
}

// createConfigVersion records a draft, or an active version.
func (s *server) createConfigVersion(ctx context.Context, r *request) (any, error) {
	v := record.ConfigVersion{Biz: r.biz, Template: r.templateID(), Description: must(r.form, "description", text),
		Content: must(r.form, "content", untrimmed), Format: r.format()}
	v.Active, _ = opt(r.form, "is_active", boolean)
	if err := r.err(); err != nil {
		return nil, err
	}
	if err := s.configs.AddVersion(ctx, r.Caller, &v); err != nil {
		return nil, err
	}
	return versionOf(&v), nil
}

// configVersionRetrieve is one version.
func (s *server) configVersionRetrieve(ctx context.Context, r *request) (any, error) {
	id := r.versionID()
	if err := r.err(); err != nil {
		return nil, err
	}
	v, err := s.configs.Version(ctx, r.Caller, r.biz, id)
	if err != nil {
		return nil, err
	}
	return versionOf(&v), nil
}

// configVersionUpdate changes a version.
func (s *server) configVersionUpdate(ctx context.Context, r *request) (any, error) {
	id := r.versionID()
	description, content := must(r.form, "description", text), must(r.form, "content", untrimmed)
	draft, active, format := must(r.form, "is_draft", boolean), must(r.form, "is_active", boolean), r.format()
	if err := r.err(); err != nil {
		return nil, err
	}

	v, err := s.configs.SaveVersion(ctx, r.Caller, r.biz, id, func(v *record.ConfigVersion) {
		v.Description, v.Content, v.Draft, v.Active = description, content, draft, active
		if format != nil {
			v.Format = format
		}
	})
	if err != nil {
		return nil, err
	}
	return versionOf(&v), nil
}

// configVersionClone makes the draft a copy of a version.
func (s *server) configVersionClone(ctx context.Context, r *request) (any, error) {
	id := r.versionID()
	description := must(r.form, "description", text)
	if err := r.err(); err != nil {
		return nil, err
	}
	v, err := s.configs.CloneVersion(ctx, r.Caller, r.biz, id, description)
	if err != nil {
		return nil, err
	}
	return versionOf(&v), nil
}

// listVersion lists the versions of a template, newest first.
func (s *server) listVersion(ctx context.Context, r *request) (any, error) {
	id := r.templateID()
	if err := r.err(); err != nil {
		return nil, err
	}
	list, err := s.configs.Versions(ctx, r.Caller, r.biz, id)
	if err != nil {
		return nil, err
	}
	out := make([]versionInfo, len(list))
	for i := range list {
		out[i] = versionOf(&list[i])
	}
	return out, nil
}

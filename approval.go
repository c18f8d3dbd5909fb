package gozzard

import "context"

// approvedKey marks the context of an act that a second person approved.
type approvedKey struct{}

// WithApproval marks the context of an act that a second person approved, or that needs none.
func WithApproval(ctx context.Context) context.Context {
	return context.WithValue(ctx, approvedKey{}, true)
}

// IsApproved reports whether an act needs no second person any more.
func IsApproved(ctx context.Context) bool { return ctx.Value(approvedKey{}) != nil }

package control

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// TopologyStore is the part of the record that holds businesses.
type TopologyStore interface {
	// Businesses lists what is recorded, by id.
	Businesses(ctx context.Context) ([]record.BusinessHead, error)

	// Business reads one whole, lists sorted by id, with its instance numbers by process id. ErrNotFound for an
	// unknown one.
	Business(ctx context.Context, biz int) (record.Business, error)

	// SaveBusiness records a change, its audit row and the new version (the old one plus 1) in one transaction.
	// ErrConflict when the recorded version is not Change.Base: another change was faster, and nothing is changed.
	SaveBusiness(ctx context.Context, c topology.Change, source string, audit gozzard.AuditRow) (version int64,
		err error)

	// Services reads service instances with their processes, in order of their ids; missing ones are left out.
	Services(ctx context.Context, biz int, ids []int) ([]topology.ServiceInstance, error)
}

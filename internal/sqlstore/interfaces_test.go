package sqlstore_test

import (
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/waves"
)

// The store serves these parts. It imports none of them: their types are in package record.
var (
	_ control.Store         = (*sqlstore.Store)(nil)
	_ control.TopologyStore = (*sqlstore.Store)(nil)
	_ control.AuditStore    = (*sqlstore.Store)(nil)
	_ waves.Store           = (*sqlstore.Store)(nil)
	_ configfile.Store      = (*sqlstore.Store)(nil)
)

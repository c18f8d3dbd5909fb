// Package cmdb is a reader of BlueKing CMDB: what it says of a business, whole or not at all, and a sync that keeps
// the record like it.
package cmdb

// Package cmdb reads businesses from BlueKing CMDB and keeps the record up to date with it. It reads a business
// completely or not at all.
package cmdb

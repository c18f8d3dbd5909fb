// Package cluster tests several servers on one record, with the built program.
package cluster

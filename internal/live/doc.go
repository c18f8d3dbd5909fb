// Package live shows viewers the processes of the fleet as columns, and then what changes in them, to each only what it
// may see.
package live

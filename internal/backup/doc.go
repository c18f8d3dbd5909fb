// Package backup puts what a server needs to live again into one encrypted file and takes it out again.
//
// A backup is an age file around a tar of named files, a manifest first. There is no form of it that is not
// encrypted: it has the authority of the fleet and the key that every agent obeys.
package backup

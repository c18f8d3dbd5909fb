// Package backup writes everything that a server needs into one encrypted file, and restores a server from it.
//
// A backup is an age file that contains a tar archive: a manifest and the files that it names. There is no unencrypted
// form, because a backup contains the authority of the fleet and the key that every agent obeys.
package backup

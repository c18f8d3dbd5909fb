// Package journal is an append-only file with checksums and fdatasync. It has everything that an agent must not
// forget.
//
// # Promises
//
// When Sync(lsn) or Append has returned without an error, every record up to that lsn survives a crash of the
// process and of the machine, in order. If synced records are missing at Open, the journal says so: it keeps the
// valid records, moves the rest to a side file, and continues under a new id. So no reader takes "not in the
// journal" for "never happened".
//
// # The file
//
//	header   magic, format version, checksum | journal id, base lsn, checksum | mark, checksum      64 bytes
//	record   body length, CRC-32C of everything else, lsn, type, body                               repeated by lsn
//
// The first 16 bytes have the same form in every version, so that an older program can reject a newer file without
// touching it. When a file of an older version is opened, it gets the present version.
//
// # Torn or damaged
//
// A crash may leave a half-written record at the end of the file. That record was never synced, so it is cut off and
// the id stays. A synced record at the end that was damaged or cut off later looks the same. The mark distinguishes
// the two. After each fdatasync, the highest synced lsn is written into the header, without a separate sync. The mark
// is never ahead of the disk. After a crash of the process it is exact. After a power cut it may be behind by the
// last group of records, but those records were synced before the power cut, so they are in the file. If the last
// valid record is below the mark, something synced is missing. A second file for the mark would cost a second
// fdatasync for each group and say nothing more.
//
// A valid record behind a bad one is damage as well. A folder that was restored from an old copy cannot be detected
// in the file alone. The server detects it, because it remembers the last position (id, lsn) that it has seen.
//
// # Full disk
//
// A record that does not fit is removed as a whole. The first time, the journal deletes a reserve file. From then on
// it accepts only vital records, which are the ends of begun operations, until it could make the reserve again. A
// failed fdatasync is never repeated, because the kernel may have dropped the pages: the journal calls Fatal and
// acknowledges nothing any more.
//
// # A folder that cannot be written
//
// Three faults do not end the program, because a supervisor that ends is worse than one that cannot record: the file
// system has become read-only (a write or a sync fails with EROFS), the journal was deleted, or another file is in its
// place. After each sync the journal compares the open file with the one at its path, because writes into a deleted
// file succeed and are lost at the next restart. From then on every call returns ErrUnable. Check notices the same
// while nothing is written. Every other failed write or sync is fatal as before, EIO above all.
//
// The file is not continued after such a fault: it may end with a part of a record, and a sync of it may have failed.
// Recover writes everything that is alive into a new file. Until then the caller has it only in memory. Before the
// caller acts on what is not durable, it calls Detach and names the new id to its server: a restart finds the file with
// the old id, so the server takes nothing in it for complete. Recover stores the new id.
//
// # Locks
//
// Open locks the folder and a file in it. The lock on the folder stays if a person removes the file. The lock on the
// file keeps out agents of earlier versions, which know only that one.
package journal

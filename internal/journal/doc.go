// Package journal is an append-only file with checksums and fdatasync: what an agent must not forget.
//
// # Promises
//
// When Sync(lsn) or Append has returned without error, every record up to that lsn survives a crash of the process
// and of the machine, in order. When records that were synced are missing at Open, the journal says so: what is
// valid is kept, the rest goes to a side file, and the journal continues under a new id, so that nobody takes "not
// in the journal" for "never happened".
//
// # The file
//
//	header   magic, format version, checksum | journal id, base lsn, checksum | mark, checksum      64 bytes
//	record   body length, CRC-32C of everything else, lsn, type, body                               repeated, lsn by lsn
//
// The first 16 bytes have the same form in every version, so that an older program can refuse a newer file without
// touching it. A file of an older version is marked with this one when it is opened.
//
// # Torn or damaged
//
// A crash may leave a half-written record at the end. It was never synced, so it is cut off and the id stays. From
// the records alone a synced record at the end that was damaged or cut off later would look the same. The mark
// tells them apart: after each fdatasync the highest synced lsn is written into the header, without a sync of its
// own. It is never ahead of the disk. After a crash of the process it is exact; after a power cut it may lack the
// last group of records, and those were synced before the power went, so they are there. Valid prefix < mark
// therefore means that something synced is gone; a second file for this would cost a second fdatasync per group and
// say nothing more. A valid record behind a bad one counts as damage too. What the file alone cannot show, a folder
// put back from an old copy, is noticed by whoever remembers the position (id, lsn) seen last.
//
// # No room
//
// A record that does not fit is taken back as a whole. The first time, a reserve file is given up: from then on
// only vital records are taken (the ends of what was begun), until the reserve could be made again. A failed
// fdatasync is never repeated, since the kernel may have dropped the pages: Fatal is called and nothing is
// acknowledged any more.
package journal

// Package signing is the signature of the server on every command: an agent obeys nobody who merely reaches it.
//
// The Signer (on the server) puts the exact bytes of a command into an envelope for one agent; the Ring (on the
// agent) gives them back only when the server's key signed them for this agent, and nothing reads them before.
// Whoever owns the fabric in between can drop commands and repeat them; repeating is refused by session, operation
// id and generation, which are inside.
//
// Keys are numbered by epochs. A new key is introduced by a hand-over that the one before it signed; an agent keeps
// the newest key on its disk and from then on refuses every older one, so neither a stolen old key nor a server
// restored from an old copy commands anybody.
//
// An envelope is, all numbers big-endian: "GZS1", key id (8 bytes), epoch (8), not after (8, seconds since 1970),
// length of the agent id (1) and the id, count of hand-overs (1) and each of them (epoch 8, public key 32,
// signature 64), a random salt (16), length of the command (4) and the command. Up to there it is a leaf of a hash
// tree (see batch.go). Count of steps to the root (1) and each of them (side 1, hash 32) follow, and the Ed25519
// signature (64) of "GZR1" and the root. A hand-over signs "GZH1", the id of the key before (8), the new epoch (8)
// and the new public key (32).
package signing

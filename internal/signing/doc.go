// Package signing signs every command of the server, so that an agent obeys its server only.
//
// The Signer of the server puts the exact bytes of a command into an envelope for one agent. The KeyRing of the agent
// returns the command only if the server's key signed it for this agent; nothing decodes it before. An attacker that
// controls the fabric can drop and repeat commands. Agents reject repeated ones by the session, operation id and
// generation inside of the command.
//
// Keys have consecutive numbers, the epochs. The previous key signs a hand-over to each new key. An agent stores the
// newest key on its disk and from then on rejects every older one. So neither a stolen old key nor a server that was
// restored from an old copy can command an agent.
//
// The format of an envelope, with all numbers big-endian: "GZS1", key id (8 bytes), epoch (8), not after (8, seconds
// since 1970), length of the agent id (1) and the id, number of hand-overs (1) and the hand-overs (epoch 8, public key
// 32, signature 64), a random salt (16), length of the command (4) and the command. All bytes up to here are a leaf of
// a hash tree (see batch.go). Then follow the number of steps to the root (1), the steps (side 1, hash 32), and the
// Ed25519 signature (64) of "GZR1" and the root. A hand-over signs "GZH1", the id of the previous key (8), the new
// epoch (8) and the new public key (32).
package signing

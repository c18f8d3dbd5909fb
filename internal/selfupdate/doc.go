// Package selfupdate replaces the program of an agent by a newer release, and restores the previous program if the
// new one does not reach its server.
//
// # Trust
//
// The agent trusts only the release key that the owner of the host has put there. It trusts neither the server that
// orders the update nor the network that carries the release. Everything is checked before anything is replaced: the
// signature, the expiry, the platform, the size, the SHA-256, that the version is newer than any that ran here, and
// that the new program starts and prints that version.
//
// # The trial
//
// The new program takes over the agent's process and is on trial until the server has welcomed it. The state of the
// trial is in update.json in the state folder. It is durable before each step, so it is right after a crash at any
// time. If a trial ends without a welcome, or starts for the second time, the previous program is restored. The
// previous program records the failure when it runs again.
package selfupdate

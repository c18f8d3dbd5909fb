// Package selfupdate replaces the program of an agent by a newer release, and puts the one before back when the new
// one does not reach its server.
//
// # What is believed
//
// The release key that the host's owner has put on the host, and nobody else: not the server that orders the
// update, nor the network that the release came by. Everything is checked before anything is replaced: signature,
// end, platform, size, SHA-256, that the version is newer than any that ran here, and that the new program starts
// and says that version.
//
// # The trial
//
// The new program takes the agent's process over and is on trial until the server has welcomed it. What there is to
// know about that is in update.json of the state folder, durable before each step, so it holds whoever dies when: a
// trial that is over without a welcome, or that starts for the second time, ends with the previous program in
// place. The last step back is told by the previous program itself, once it runs.
package selfupdate

// Package wire is the versioned binary form of the two messages between server and agent: gozzard.Command goes
// down, gozzard.Report goes up.
//
// It is protobuf wire format, written straight from and to the domain types; wire.proto beside this file documents
// every field, and other languages can read the messages with it. The first field of a message is always its
// version, so that a receiver knows before anything else whether it can understand the rest.
//
// What an Append func writes, the Decode func of the same build reads: text is made valid UTF-8 and cut at
// MaxString on the way out, because a single message that the receiver refuses would be repeated by the delivery
// protocol for ever. A Decode func takes any bytes: it never panics, and allocates no more than a small multiple of
// its input.
package wire

// Package wire encodes and decodes the two messages between server and agent: gozzard.Command from the server to the
// agent, and gozzard.Report from the agent to the server.
//
// The format is that of protobuf, written directly from and to the domain types. The file wire.proto documents every
// field; programs in other languages can use it to read the messages. The first field of a message is always its
// version, so that a receiver knows at once whether it can decode the rest.
//
// Each type has a pair of functions, such as appendOp and decodeOp. The numbers in them are the field numbers of
// wire.proto.
//
// A Decode function can read everything that the Append function of the same build writes. To ensure that, Append makes
// texts valid UTF-8 and truncates them to MaxString: the delivery protocol would repeat a message for ever that the
// receiver rejects. A Decode function accepts any bytes: it never panics, and allocates at most a small multiple of its
// input.
package wire

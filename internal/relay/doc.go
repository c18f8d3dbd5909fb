// Package relay connects hosts of closed networks to servers.
//
// A relay opens one connection to a server, HTTP/2 over TLS 1.3, on which both prove themselves with certificates of the
// installation's authority. Each connection that a host opens to the relay becomes a stream of that connection. The
// server puts the bytes of a stream onto its port for agents, or serves them as a connection to the part of its API that
// is for hosts. TLS between host and server is inside of the stream: the relay carries bytes that it can neither read
// nor change, and the server sees the certificate of each host.
//
// Door is the server's end, Relay is the other one.
package relay

// Package keyprogram uses private keys that another program holds, such as one that speaks to a hardware token.
//
// The server starts the program and writes requests to its standard input, one line each. The program writes one line
// to its standard output for each request, in the same order. What it writes to its standard error goes to the log.
//
//	gozzard-signer 1                  the first line: the version of this protocol
//	ok
//	public NAME                       asks for a public key
//	ok ED25519-OR-P256-KEY            in base64: the DER form that "BEGIN PUBLIC KEY" has in PEM
//	sign NAME ALGORITHM BYTES         asks for a signature; the bytes are in base64
//	ok SIGNATURE                      in base64
//	error TEXT                        instead of ok: why it does not answer
//
// ALGORITHM is ed25519 (the bytes are the text to sign, the signature has 64 bytes) or ecdsa-sha256 (the bytes are a
// SHA-256 digest, the signature is in the DER form). NAME is signing-1, signing-2 and so on for the keys that sign
// commands, and authority-1, authority-2 and so on for authorities. The program ends when its input ends.
//
// A line has at most 64 KiB and ends with a newline. A program that writes a longer line, a line without a request or
// more than one line for a request, or that does not answer within 30 seconds, is ended and started again. The request
// is sent a second time, and then fails.
package keyprogram

// Package doctor looks at a host as an agent would find it, and at the data folder of a server, and says what is wrong
// and what to do about it. It changes nothing.
package doctor

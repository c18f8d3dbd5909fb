// Package strictjson reads JSON requests strictly: bounded, without case folding or duplicate names, and with the
// path of every fault. It also writes large answers without reflection.
package strictjson

// Package record has the types of what is stored and of the answers made from it. The control plane, the stores and
// the HTTP APIs share them, so that none of these has to import another.
package record

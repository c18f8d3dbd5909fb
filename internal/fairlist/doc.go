// Package fairlist has a bounded list of things in order that several owners share: when the list is full, the oldest
// thing of the owner that has the most makes room, so no owner can push out the others.
package fairlist

// Package release is what a release of this program says of itself: a manifest with its version, its end and its
// files, signed by the release key. The key is nobody's who runs a server, so a server can hand a release on and
// cannot make one.
package release

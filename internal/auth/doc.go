// Package auth knows who is asking: apps by their secret, people by their token or, for trusted apps, by the app's
// word.
package auth

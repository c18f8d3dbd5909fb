// Package auth identifies callers and knows their rights. An app proves itself by its secret or a signature. A user
// proves itself by a token; an app on the white list may also name the user it acts for.
package auth

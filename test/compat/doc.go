// Package compat holds a test only: the program of this checkout opens records, journals and state folders that
// earlier versions of the program wrote, and answers callers as those versions did.
package compat

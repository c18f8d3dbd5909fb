// Package importer turns configurations of other supervisors into definitions, with a report of what has no counterpart.
//
// A configuration is read whole or not at all: what cannot be read is an error with its line. A process is imported if
// everything that is left out of it is harmless, or is in the report with what to do about it. A process that would not run
// as before is left out, and the report says why. Every definition that an importer returns can be registered.
package importer

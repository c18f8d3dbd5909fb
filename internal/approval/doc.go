// Package approval lets an act wait until a second person approves it.
//
// A place where an act may have to wait calls Desk.Ask, which records the request and returns it as a *Held error. Both
// people need a login of their own: an app, or a user that an app only names, can neither ask nor decide. The digest of
// a request covers everything that is carried out. The second person repeats it, and it is compared again before the
// act is carried out.
package approval

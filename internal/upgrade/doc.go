// Package upgrade brings a release to the agents of a fleet, in stages: the next one begins when every host of the
// one before runs the release and was welcomed with it. It hands on what others have signed and decides only who is
// asked when; whether a host takes the release is for that host.
package upgrade

// Package upgrade brings a release to the agents of a fleet, in stages. A stage starts when every host of the previous
// one runs the release and is connected again. The package distributes releases that others have signed, and decides
// only when a host is asked. Each host decides by itself whether it installs the release.
package upgrade

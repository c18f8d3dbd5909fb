// Package configfile keeps the configuration files of businesses: templates, their versions, the processes that they are bound to,
// and what was rendered for each process instance.
package configfile

// Package packages tests what is installed: units, settings, packages and the image, in a copy of this machine's files.
package packages

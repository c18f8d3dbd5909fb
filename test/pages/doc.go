// Package pages runs the commands of the pages as they are written, with the built program, on a machine of their own.
package pages

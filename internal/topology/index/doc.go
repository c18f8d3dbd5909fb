// Package index answers queries about the processes of businesses from memory, by column.
package index

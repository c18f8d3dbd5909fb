// Package language chooses the language of messages and has their Chinese texts.
package language

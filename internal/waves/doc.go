// Package waves does one action to many processes in waves: processes of lower priority wait for those of higher,
// and a wave that fails holds back the later ones of its group. A job is durable: a server that starts again goes
// on where the last one ended, and does nothing twice.
package waves

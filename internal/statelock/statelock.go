// Package statelock has the locks of state that all requests of a server share. A panic while one is held ends the
// program.
//
// Panics in the handler of a request are recovered (by net/http and by our APIs): one request fails, the server goes
// on. After a panic under a lock that would be wrong. The lock stays locked and every later request hangs, or it is
// released over state that is changed by half. Supervisors start a program that has ended again; nothing helps one that
// hangs.
//
// Unlock has to be deferred, because only a deferred call sees the panic:
//
//	x.mu.Lock()
//	defer x.mu.Unlock()
package statelock

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Mutex is a sync.Mutex that ends the program when its holder panics. Its zero value is unlocked.
type Mutex struct{ mu sync.Mutex }

// Lock is that of sync.Mutex.
func (m *Mutex) Lock() { m.mu.Lock() }

// Unlock unlocks. Where it is deferred, a panic ends the program instead.
func (m *Mutex) Unlock() {
	if p := recover(); p != nil {
		endProgram(p)
	}
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex that ends the program when a holder panics. Its zero value is unlocked.
type RWMutex struct{ mu sync.RWMutex }

// Lock is that of sync.RWMutex.
func (m *RWMutex) Lock() { m.mu.Lock() }

// Unlock unlocks. Where it is deferred, a panic ends the program instead.
func (m *RWMutex) Unlock() {
	if p := recover(); p != nil {
		endProgram(p)
	}
	m.mu.Unlock()
}

// RLock is that of sync.RWMutex.
func (m *RWMutex) RLock() { m.mu.RLock() }

// RUnlock unlocks. Where it is deferred, a panic ends the program instead.
func (m *RWMutex) RUnlock() {
	if p := recover(); p != nil {
		endProgram(p)
	}
	m.mu.RUnlock()
}

// endProgram panics in a goroutine of its own, where nothing recovers it: the program ends with status 2, as after any
// panic that is not recovered. The text has the stack of the first panic, whose goroutine waits here and keeps the
// lock.
func endProgram(p any) {
	text := fmt.Sprintf("panic while shared state was locked: %v\n\n%s", p, debug.Stack())
	go panic(text)
	select {}
}

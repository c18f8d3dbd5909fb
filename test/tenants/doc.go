// Package tenants is about those who share a fleet: its tests go over every door as one of them and look for what
// is another's.
package tenants

// Package ratelimit is what stands before all APIs: it bounds how often, how slowly and how much anybody may ask,
// so that nobody's asking is felt by others.
package ratelimit

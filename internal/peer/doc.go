// Package peer is one connection of a broker to another one, for requests that are answered one
// after the other: to the controller, to a leader.
//
// A Client connects when it is needed, asks which versions the other side has (ApiVersions), and
// stays connected until something fails; the next request connects again. It does not try a request twice:
// who asks knows whether that is safe.
package peer

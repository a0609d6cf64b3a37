// Package archtest holds the order of gregor's packages as data, in arch_test.go, and a
// test that checks every import of the module against it. It has no other content.
//
// To add a package, give it a place in the order. To add a dependency of a storage
// package, think again.
package archtest

// Package text appends numbers and strings as JSON and as Java show them, without an allocation for each.
package text

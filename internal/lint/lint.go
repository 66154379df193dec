// Package lint holds the rules of this repository that a compiler does not
// know, as tests: which package may import which, where clocks, files,
// environment and flags may be read, what must be documented, how long a file
// may be, and that every field case has its test. Each rule that has
// exceptions lists them with their reasons.
package lint

// Package mutants proves that the tests notice: each file in testdata breaks
// one promise, and a test must fail because of it.
//
//	make mutants                                      all of them: mutant → test
//	cd internal/mutants && go test -mutants -only 07  those whose name matches
//
// A mutant is a file of this form. Old text is whole lines, exactly as they
// stand, and must be found exactly once: a mutant that no longer applies, or
// does not compile, is a failure of the mutant. New text may be empty, and
// there may be several edits.
//
//	promise P2
//	breaks  the attempt is counted when it ends, not when it is claimed
//	test    ./sqlite TestConformance/claim
//
//	--- sqlite/claim.go
//		old lines
//	+++
//		new lines
//
// Each test line names a package and, if that is too slow as a whole, a -run
// pattern; the lines are tried in order until a test fails, so the cheapest
// comes first. Mutants never touch the working tree: it is copied once, and the
// edits are laid over the copy.
package mutants

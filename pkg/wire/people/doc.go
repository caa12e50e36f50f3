// Package people knows the users and groups of this host: those of its own files, and those of a
// directory (LDAP, SSSD, Active Directory) that its name service asks.
//
// The C library's look-ups are the only ones that know of all directories, and they take as long as the
// directory does: for ever, where it hangs. So they are made in a child, getent, which has a deadline
// and is killed at it; no program of ours is linked against the C library for them. What a file of
// this host says is read here, without a child.
//
// States of a name or number:
//
//	fresh      looked up less than [Fresh] ago: answered from memory
//	known      older: answered from memory, and looked up again beside that
//	unknown    the directory has said so: believed for [Unknown], and of somebody who
//	           was known only after [Doubt], for a directory that is starting says so of all
//	no answer  the directory does not answer: who was known stays known, of others
//	           the error is a [NoAnswer]; nobody is asked about again for [Retry]
//
// Invariants: the number is who somebody is, a name is how he is called. A name counts only where it
// leads back to its number, so that a directory can give nobody the name of somebody of this host's files. No
// call takes longer than [Patience]; no lock is held while a child runs.
package people

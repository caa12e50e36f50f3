// Package sqlstore is what stores on an SQL database do alike: which rows a batch has, how they are
// read, and what is written beside commits. A database is a [Database]; what its SQL has to
// say otherwise (types, many rows at a time) it makes of [Tables].
//
// Invariants: each answer of a [Store] is of one commit; a row's text is sealed with what row
// it is (sums.go); SQL that stands here is understood alike by SQLite and PostgreSQL, with $1
// for an argument.
//
// Failure rules are those of the [Database]: an error of it is given on as it is.
//
// Begin with Database, Tables and Batch.
//
// It must not know the driver or the files of one database.
package sqlstore

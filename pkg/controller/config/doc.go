// Package config reads the configuration of the two daemons: a TOML file, key=value
// overrides from the command line, and defaults, in that order of falling weight.
//
// States: none. A load gives a complete, validated [Controller] or [Node], or an error;
// nothing is read again later.
//
// Invariants:
//   - Every key is a field of a struct here (or of [api.Settings], [api.Partition]) and has
//     a row in rows.go with its meaning and bounds; docs/configuration.md is made from both.
//   - Site settings are top-level keys. Tables are arrays with a name ([[partition]]):
//     viper lower-cases the keys of maps, so a name must never be a key.
//   - Paths are absolute: a daemon's working directory means nothing.
//
// [CheckController] and [CheckNode] say what is wrong with a file, and with what it names on this host, without a daemon that
// would start with it.
//
// Failure rules: all that is wrong is reported at once, one line each: file, line, key,
// what was found, what is wanted. An unknown key is an error and names the nearest key.
// A file that is named but missing is an error; no file at all (path "") means defaults.
//
// Begin with rows.go (the keys of both daemons, and those that have been renamed) and LoadController.
// It must not know the engine, the network or what a running daemon does.
package config

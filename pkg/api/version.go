package api

// Version is the version of all programs of one build; the Makefile sets it with
// -ldflags '-X gangd/pkg/api.Version=...'.
var Version = "dev"

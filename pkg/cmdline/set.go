package cmdline

// Word is the Set of an option that takes one value.
func Word[T any](at func(*T) *string) func(*T, string) error {
	return func(t *T, v string) error { *at(t) = v; return nil }
}

// Words is the Set of an option that takes names with commas between them.
func Words[T any](at func(*T) *[]string) func(*T, string) error {
	return func(t *T, v string) error { *at(t) = Split(v); return nil }
}

// Flag is the Set of an option without a value.
func Flag[T any](at func(*T) *bool) func(*T, string) error {
	return func(t *T, _ string) error { *at(t) = true; return nil }
}

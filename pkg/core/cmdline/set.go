package cmdline

// Word is the Set of an option that takes one value.
func Word[T any](at func(*T) *string) func(*T, string) error {
	return func(t *T, v string) error { *at(t) = v; return nil }
}

// Parsed is the Set of an option that takes one value of some kind.
func Parsed[T, V any](at func(*T) *V, parse func(string) (V, error)) func(*T, string) error {
	return func(t *T, v string) (err error) {
		*at(t), err = parse(v)
		return err
	}
}

// Words is the Set of an option that takes names with commas between them.
func Words[T any](at func(*T) *[]string) func(*T, string) error {
	return func(t *T, v string) error { *at(t) = Split(v); return nil }
}

// MoreWords is [Words] of an option whose repeats add up.
func MoreWords[T any](at func(*T) *[]string) func(*T, string) error {
	return More(at, func(v string) ([]string, error) { return Split(v), nil })
}

// More is the Set of an option that takes a list and whose repeats add up.
func More[T, V any](at func(*T) *[]V, parse func(string) ([]V, error)) func(*T, string) error {
	return func(t *T, v string) error {
		list, err := parse(v)
		*at(t) = append(*at(t), list...)
		return err
	}
}

// Flag is the Set of an option without a value.
func Flag[T any](at func(*T) *bool) func(*T, string) error {
	return func(t *T, _ string) error { *at(t) = true; return nil }
}

// Accepted is the Set of an option of which accepting it is all there is to do.
func Accepted[T any](*T, string) error { return nil }

//go:build !cgo

package nvmlgpu

// openNVML of a build without cgo, which NVML's library needs.
func openNVML() (source, error) {
	return nil, errNone{"built without NVML (CGO_ENABLED=0)"}
}

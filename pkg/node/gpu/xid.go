package gpu

// applicationXids are errors of the program that used the card (a wild pointer, an assert),
// the clean-up after one that was killed (45), or news without consequence; NVIDIA's Xid
// catalogue tells none of them to reset.
var applicationXids = map[int]bool{13: true, 31: true, 43: true, 45: true, 63: true, 68: true, 69: true, 92: true, 94: true, 109: true,
	121: true}

// FatalXid reports whether a card must not be used after an Xid before somebody has looked
// at it: off the bus (79), memory errors that were not contained (48, 64, 95), a firmware that
// does not answer (119, 120), and every number that is not known to be harmless.
func FatalXid(number int) bool { return number != 0 && !applicationXids[number] }

// XidText is what people are told of a fatal Xid.
func XidText(number int) string { return xidNames[number] }

// xidNames has those that operators meet most; the others are a number.
var xidNames = map[int]string{
	48: "double-bit ECC error", 61: "internal micro-controller breakpoint", 62: "internal micro-controller halt",
	64: "a row of its memory could not be remapped", 74: "NVLink error", 79: "fell off the bus",
	95: "uncontained ECC error", 119: "its firmware does not answer", 120: "its firmware failed",
}

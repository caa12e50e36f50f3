package script

import (
	"strconv"
	"strings"
)

const gresForms = "write --gres=gpu:4, --gres=gpu:a100:4 or --gres=gpu:1,VRAM:24G"

// maxGPUs bounds a count of cards: a typo is refused before anything is computed with it.
const maxGPUs = 1 << 16

// minVRAM is below what a CUDA context alone takes: a smaller figure is a missing unit.
const minVRAM = 256 << 20

// parseGPUs reads [type:]count; a type alone is one card of it.
func parseGPUs(s string) (kind string, count int, err error) {
	kind, num, ok := strings.Cut(s, ":")
	if ok && strings.EqualFold(kind, "gpu") && !strings.Contains(num, ":") { // as in --gres
		kind, ok, s = "", false, num
	}
	if !ok {
		kind, num = "", s
		if !digits(s) && gpuType(s) {
			return strings.ToLower(s), 1, nil
		}
	}
	if strings.Contains(num, ",") {
		return "", 0, bad("only one type of card for a job", "write alternatives as --gres=gpu:a100|h100:4, or submit one job for each type")
	}
	count, e := strconv.Atoi(num)
	if e != nil || !digits(num) || ok && !gpuType(kind) {
		return "", 0, bad("not a number of cards", "write 4 or a100:4")
	}
	if count > maxGPUs {
		return "", 0, bad(num+" cards are more than any site has", "write 4 or a100:4")
	}
	return strings.ToLower(kind), count, nil
}

// gpuType accepts "a100", "a100|h100", "nvidia_a100-sxm4-80gb".
func gpuType(s string) bool {
	if s == "" || s[0] == '-' || digits(s) {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_.|", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// gres is what --gres asks of each node.
type gres struct {
	gpus int
	kind string
	vram int64 // per card
	// sizeOnly: it names VRAM and no cards, which is one card unless another option counts.
	sizeOnly bool
}

// parseGRES reads gpu, gpu:4, gpu:a100:4, and VRAM as sites spell it: VRAM:24G,
// gpumem:20g, gmem:40G. VRAM without a count of cards is one card.
func parseGRES(s string) (gres, error) {
	var g gres
	seen := false
	for _, part := range strings.Split(s, ",") {
		name, rest, has := strings.Cut(strings.TrimSpace(part), ":")
		if !has {
			if n, r, ok := strings.Cut(name, "="); ok { // "gpu=4" is also written
				name, rest, has = n, r, true
			}
		}
		switch strings.ToLower(name) {
		case "gpu":
			if seen {
				return gres{}, bad("gpu is named twice", "one type of card for a job; alternatives are gpu:a100|h100:4")
			}
			seen = true
			if !has {
				rest = "1"
			}
			var err error
			if g.kind, g.gpus, err = parseGPUs(rest); err != nil {
				return gres{}, err
			}
		case "vram", "gpumem", "gmem", "gpu_mem", "gpuram":
			v, err := parseVRAM(rest)
			if err != nil {
				return gres{}, err
			}
			g.vram = v
		case "none":
		default:
			if rest == "0" { // none of it, whatever it is
				continue
			}
			return gres{}, bad("unknown resource "+strconv.Quote(name), gresForms)
		}
	}
	if g.vram > 0 && !seen {
		g.gpus, g.sizeOnly = 1, true
	}
	return g, nil
}

// parseCompute reads a compute capability as people meet it: 8.0, sm_80, sm90a, compute_90.
func parseCompute(s string) (string, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	for _, p := range []string{"compute_", "sm_", "sm", "cc"} {
		t = strings.TrimPrefix(t, p)
	}
	t = strings.TrimRight(t, "af") // the architecture's own features
	major, minor, dotted := strings.Cut(t, ".")
	if !dotted && len(t) > 1 { // nvcc's spelling: the last digit is the minor version
		major, minor = t[:len(t)-1], t[len(t)-1:]
	}
	if minor == "" {
		minor = "0"
	}
	if !digits(major) || !digits(minor) || len(major) > 2 || len(minor) > 1 || major == "0" {
		return "", bad("not a CUDA compute capability", "write --min-compute=8.0 or sm_80; ginfo --json has those of the cards")
	}
	return major + "." + minor, nil
}

// parseVRAM reads the VRAM of one card.
func parseVRAM(s string) (int64, error) {
	v, err := ParseSize(s)
	if err != nil {
		return 0, err
	}
	if v < minVRAM {
		hint := "write --vram=24G"
		if digits(s) && v > 0 {
			hint = "did you mean " + s + "G?"
		}
		return 0, bad(formatSize(v)+" is less than a card needs for any program", hint)
	}
	return v, nil
}

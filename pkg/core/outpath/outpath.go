// Package outpath says which files the output of a rank goes to: the patterns of --output
// and --error, expanded. The node opens these files, the controller names them to people
// and to glog; both use this package, so that they agree.
//
// The package is pure and total: every pattern has an expansion; a letter that means
// nothing stays as it is, as in Slurm.
//
// Begin with Expand. It must not know users, nodes or files: it makes names.
package outpath

import (
	"path"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// The patterns of a job that named none.
const (
	DefaultOne  = "gang-%j.out"    // one process writes
	DefaultMany = "gang-%j.%t.out" // each rank has its own file
	arrayOne    = "gang-%A_%a.out"
	arrayMany   = "gang-%A_%a.%t.out"
)

// Letters are those that stand for something behind a percent sign.
const Letters = "jJxAabsuNntr"

// maxWidth is Slurm's: %10j is the widest that pads.
const maxWidth = 10

// Vars is what a pattern may speak of.
type Vars struct {
	Job        int64  // %j %J
	ArrayJob   int64  // %A, 0: not of an array, then %A is %j
	ArrayIndex *int   // %a, nil: 0; %b is its last figure
	Name       string // %x
	User       string // %u
	Node       string // %N, up to its first dot
	NodeIndex  int    // %n
	Rank       int    // %t
	Restarts   int    // %r
}

// Output is the absolute path of a rank's output.
func Output(s *api.Spec, v Vars) string {
	pattern := s.Output
	if pattern == "" {
		pattern = Default(s)
	}
	return absolute(s.WorkDir, Expand(pattern, v))
}

// Error is the absolute path of a rank's error output; empty: with the output.
func Error(s *api.Spec, v Vars) string {
	if s.Error == "" {
		return ""
	}
	return absolute(s.WorkDir, Expand(s.Error, v))
}

// Default is the pattern of a job that named none.
func Default(s *api.Spec) string {
	if s.Size > 1 && s.Launch != api.LaunchBatch {
		return DefaultMany
	}
	return DefaultOne
}

// OfArray is the pattern of an array that named none: its files are called as its elements are.
func OfArray(s *api.Spec) string {
	if Default(s) == DefaultMany {
		return arrayMany
	}
	return arrayOne
}

func absolute(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// Expand replaces [Letters] and %%. A number between the percent sign and the letter pads
// figures with zeros: %4t is 0003. A letter that means nothing stays as it is, and without the
// percent sign where a number is before it, as in Slurm. A pattern with a backslash is a name
// as it was written, without its backslashes.
func Expand(pattern string, v Vars) string {
	if strings.ContainsRune(pattern, '\\') {
		return unescape(pattern)
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern) && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		text, ok := "", false
		if end < len(pattern) {
			text, ok = v.letter(pattern[end], pattern[i+1:end])
		}
		switch {
		case ok:
			b.WriteString(text)
			i = end
		case end == i+1:
			b.WriteByte('%') // what follows is copied as it is
		default:
			b.WriteString(pattern[i+1 : end])
			i = end - 1
		}
	}
	return b.String()
}

// unescape takes the backslashes away; one behind another stays.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			if i++; i == len(s) {
				break
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (v Vars) letter(c byte, width string) (string, bool) {
	switch c {
	case '%':
		return "%", width == ""
	case 'j', 'J': // %J has the step behind it, which no output of a job's own has
		return pad(v.Job, width), true
	case 'A':
		if v.ArrayJob == 0 {
			return pad(v.Job, width), true
		}
		return pad(v.ArrayJob, width), true
	case 'a':
		if v.ArrayIndex == nil {
			return pad(0, width), true
		}
		return pad(int64(*v.ArrayIndex), width), true
	case 'b':
		if v.ArrayIndex == nil {
			return pad(0, width), true
		}
		return pad(int64(*v.ArrayIndex%10), width), true
	case 's':
		return "batch", true // what a step is called in srun's patterns
	case 'n':
		return pad(int64(v.NodeIndex), width), true
	case 't':
		return pad(int64(v.Rank), width), true
	case 'r':
		return pad(int64(v.Restarts), width), true
	case 'x':
		return oneName(v.Name), true
	case 'u':
		return oneName(v.User), true
	case 'N':
		short, _, _ := strings.Cut(v.Node, ".")
		return oneName(short), true
	}
	return "", false
}

func pad(n int64, width string) string {
	s := strconv.FormatInt(n, 10)
	w, _ := strconv.Atoi(width) // digits only; one too long for an int comes back as the largest
	if w = min(w, maxWidth); w > len(s) && n >= 0 {
		return strings.Repeat("0", w-len(s)) + s
	}
	return s
}

// oneName keeps a value inside its file name: a job named a/b must not make a directory.
func oneName(s string) string { return strings.ReplaceAll(s, "/", "_") }

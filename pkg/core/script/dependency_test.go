package script

import "testing"

func TestParseDependency(t *testing.T) {
	for in, want := range map[string]string{
		"afterok:12":               "afterok:12",
		"afterok:12:13,after:14":   "afterok:12,afterok:13,after:14",
		"afterany:12?afterok:3_4":  "afterany:12?afterok:3_4",
		"after:12+10:13":           "after:12+10,after:13",
		"singleton":                "singleton",
		"AfterOK:12_*":             "afterok:12",
		"12":                       "afterany:12",
		"afterok:12:12,afterok:12": "afterok:12",
	} {
		d, err := ParseDependency(in)
		if err != nil || d.String() != want {
			t.Errorf("%q: %v, %v; want %s", in, d, err, want)
		}
	}
	for in, want := range map[string]string{
		"":                     `no kind ""; ` + dependencyForms,
		"afterok":              "afterok names no job; " + dependencyForms,
		"afterok:":             "afterok names no job; " + dependencyForms,
		"afterk:12":            `no kind "afterk"; did you mean after?`,
		"afternot:12":          `no kind "afternot"; did you mean afternotok?`,
		"expand:12":            `kind "expand" is not there; ` + dependencyForms,
		"afterok:x":            `"x" is no job id; write 12, or 12_3 for one element of an array`,
		"afterok:@":            `"@" is no job id; write 12, or 12_3 for one element of an array`,
		"afterok:12+5":         "a delay (12+5) goes with after only; " + dependencyForms,
		"after:12+x":           "the delay in 12+x is no number of minutes; " + dependencyForms,
		"singleton:12":         "singleton takes no job; write singleton",
		"afterok:1,after:2?3":  "has both , (all) and ? (any); use one of them",
		"afterok:1,,afterok:2": `no kind ""; ` + dependencyForms,
	} {
		if d, err := ParseDependency(in); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v\nwant %s", in, d, err, want)
		}
	}
}

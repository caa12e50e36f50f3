package mutate

// equals are mutants that no test can tell from the source, by [Mutant.Key], with the reason.
var equals = map[string]string{}

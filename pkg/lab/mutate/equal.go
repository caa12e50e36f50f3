package mutate

// equals are mutants that no test can tell from the source, by [Mutant.Key], with the reason.
var equals = map[string]string{
	`pkg/script/duration.go unitDuration: drop "n == 0" #1`:                  "times says the same of no digits",
	`pkg/script/duration.go unitDuration: off by one "'9'" #2`:               "a colon that ends a unit begins no number, and is refused all the same",
	`pkg/script/gres.go parseVRAM: off by one "0" #3`:                        "a number without a unit counts mebibytes",
	`pkg/session/contact.go contact.at: bound "int64(t) <= old" #1`:          "an instant that is put in its own place changes nothing",
	`pkg/supervise/machine.go Machine.empty: drop "m.state == Holding" #1`:   "the last operand of the condition has it, too",
	`pkg/supervise/machine.go Machine.extend: drop "m.state == Stopping" #1`: "in every other state no kill is armed, and the later of never and anything is never",
	`pkg/supervise/machine.go Machine.relimit: drop "n != nil" #1`:           "nobody was noticed without a notice",
	`pkg/supervise/machine.go Machine.stop: skip "m.dumping = false" #1`:     "it is looked at only in a lead, and none comes after a stop",
}

// Package rule is what gangd and the site's rule for submissions (submit_rule) say to each other: the question that the
// program reads, and what becomes of its answer.
//
// States: none. [Ask] makes a question of a submission, [Parse] an answer of what the program wrote, and [Answer.Apply]
// the submission of both.
//
// Invariants:
//   - A question has every field of [api.Spec] that the submission uses, by the field's name in JSON, so that a new one
//     is in it at once. Times are in seconds, their names end so; what is not asked for is left out.
//   - A rule changes what [Fields] lists and nothing else, and each change is noted, as it was and as it is.
//
// Failure rules: an answer that is not understood whole is an error, and nothing of it is done: who wrote the rule meant
// something by it.
package rule

// Package e2e tests the built programs as people use them: `gangd dev`, real shims, real
// signals, kill -9 of anything. What the daemons say is compared with witness files that
// the ranks themselves write.
//
// The tests run bin/ (make e2e builds it). Rounds of the long ones are few by default;
// GANG_E2E_ROUNDS=100 runs them as often as the acceptance of the release asks.
package e2e

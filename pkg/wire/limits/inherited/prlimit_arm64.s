#include "textflag.h"

// func prlimit(resource uintptr, limit *[2]uint64) (errno uintptr)
TEXT ·prlimit(SB), NOSPLIT, $0-24
	MOVD $261, R8 // prlimit64
	MOVD $0, R0   // of this process
	MOVD resource+0(FP), R1
	MOVD $0, R2   // none is set
	MOVD limit+8(FP), R3
	SVC
	MOVD R0, errno+16(FP)
	RET

#include "textflag.h"

// func prlimit(resource uintptr, limit *[2]uint64) (errno uintptr)
TEXT ·prlimit(SB), NOSPLIT, $0-24
	MOVQ $302, AX // prlimit64
	MOVQ $0, DI   // of this process
	MOVQ resource+0(FP), SI
	MOVQ $0, DX   // none is set
	MOVQ limit+8(FP), R10
	SYSCALL
	MOVQ AX, errno+16(FP)
	RET

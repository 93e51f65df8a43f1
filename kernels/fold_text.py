"""Writes cu/crc64_fold.cu, the fast path of CRC-64 without tables: ``python -m seawall.kernels.fold_text > kernels/cu/crc64_fold.cu``.

Over GF(2) a polynomial's square has the squared variable: P(x)² = P(x²), so P(x)^(2^k) = P(x^(2^k)). With T lanes of 32-bit words,
T a power of two, and y = x^(32T), P(y) is therefore a multiple of P(x). A lane sees its words as the coefficients of a polynomial in
y, and may reduce that polynomial modulo P(y) by the shift register of P itself, *with whole words in the place of bits*: no table, no
shared memory, no carry-less multiplication, only XORs. Sixty-four words a lane remain, and the message that they form has the same
remainder modulo P(x); crc64_chunks sums it. (Chorba, arXiv:2412.16398, avoids tables by another identity.)

Eight words are taken at a time. The feedback words f0 to f7 are known once the top eight words of the state are; each state word then
gets the XOR of a subset of them, and all subsets of f0 to f3 and of f4 to f7 are made once ("four Russians"): 12 three-input XORs for
every four bytes.
"""

import sys

from seawall.kernels.crc64 import POLYNOMIAL

DEGREE = 64
WORDS_AT_A_TIME = 8
GROUP = 4


def _feeds_back(exponent: int) -> bool:
    """Whether P has the term x^exponent, below its leading one."""
    return 0 <= exponent < DEGREE and bool(POLYNOMIAL >> exponent & 1)


def fold_statements() -> list[str]:
    """C statements that take state[] (coefficient i of y in state[i]) and word[] one step further."""
    steps = range(WORDS_AT_A_TIME)
    lines = []
    for k in steps:
        terms = [f"state[{DEGREE - 1 - k}]"] + [f"f{m}" for m in range(k) if _feeds_back(DEGREE - 1 - (k - m - 1))]
        lines.append(f"const u32 f{k} = {' ^ '.join(terms)};")
    subset_name = {}
    for begin in range(0, WORDS_AT_A_TIME, GROUP):
        for subset in range(1, 1 << GROUP):
            lowest, rest = subset & -subset, subset & (subset - 1)
            single = f"f{begin + lowest.bit_length() - 1}"
            if not rest:
                subset_name[begin, subset] = single
                continue
            name = f"f{begin}_{subset}"
            lines.append(f"const u32 {name} = {subset_name[begin, rest]} ^ {single};")
            subset_name[begin, subset] = name
    for i in range(DEGREE - 1, -1, -1):
        terms = [f"state[{i - WORDS_AT_A_TIME}]" if i >= WORDS_AT_A_TIME else f"word[{WORDS_AT_A_TIME - 1 - i}]"]
        for begin in range(0, WORDS_AT_A_TIME, GROUP):
            members = (1 << b for b in range(GROUP) if _feeds_back(i - (WORDS_AT_A_TIME - 1 - (begin + b))))
            if subset := sum(members):
                terms.append(subset_name[begin, subset])
        lines.append(f"state[{i}] = {' ^ '.join(terms)};")
    return lines


def fold_text() -> str:
    """The whole .cu text."""
    return _TEXT.replace("        FOLD\n", "".join(f"            {line}\n" for line in fold_statements()))


_TEXT = """\
// CRC-64/NVME without tables: shortens chunks to messages with the same remainder. Written by fold_text.py, which has the mathematics;
// a test holds this file to it.
//
// One text for CuPy, NVRTC, g++ (tests/kernels) and the disassembler: no #include, no library function, own types.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

// Chunk c is a positive multiple of 32·T bytes at an address that 4 divides, and T = blockDim.x is a power of two (the host sees to it).
// Its 256·T bytes of `shortened` have the raw remainder of the chunk. The state stays in 64 registers: every index is a constant.
extern "C" __global__ void __launch_bounds__(256, 2)
crc64_fold(const u8* buffer, const u64* offset, const u64* length, u32* shortened, u64 chunks) {
    const u32 lane = threadIdx.x, lanes = blockDim.x;
    for (u64 c = blockIdx.x; c < chunks; c += gridDim.x) {
        const u32* words = (const u32*)(buffer + offset[c]) + lane;
        const u64 steps = length[c] / (32ull * lanes);
        u32 state[64], word[8], coming[8];
#pragma unroll
        for (u32 i = 0; i < 64u; i++) state[i] = 0u;
#pragma unroll
        for (u32 k = 0; k < 8u; k++) coming[k] = words[(u64)k * lanes];
        for (u64 step = 0; step < steps; step++) {
#pragma unroll
            for (u32 k = 0; k < 8u; k++) word[k] = coming[k];
            if (step + 1ull < steps) {  // the next words are on their way while these are folded in
                const u32* next = words + (step + 1ull) * 8ull * lanes;
#pragma unroll
                for (u32 k = 0; k < 8u; k++) coming[k] = next[(u64)k * lanes];
            }
        FOLD
        }
        u32* rows = shortened + c * 64ull * lanes + lane;
#pragma unroll
        for (u32 i = 0; i < 64u; i++) rows[(u64)(63u - i) * lanes] = state[i];
    }
}
"""

if __name__ == "__main__":
    sys.stdout.write(fold_text())

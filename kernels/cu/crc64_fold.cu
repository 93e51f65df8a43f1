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
            const u32 f0 = state[63];
            const u32 f1 = state[62] ^ f0;
            const u32 f2 = state[61] ^ f1;
            const u32 f3 = state[60] ^ f0 ^ f2;
            const u32 f4 = state[59] ^ f1 ^ f3;
            const u32 f5 = state[58] ^ f0 ^ f2 ^ f4;
            const u32 f6 = state[57] ^ f0 ^ f1 ^ f3 ^ f5;
            const u32 f7 = state[56] ^ f1 ^ f2 ^ f4 ^ f6;
            const u32 f0_3 = f1 ^ f0;
            const u32 f0_5 = f2 ^ f0;
            const u32 f0_6 = f2 ^ f1;
            const u32 f0_7 = f0_6 ^ f0;
            const u32 f0_9 = f3 ^ f0;
            const u32 f0_10 = f3 ^ f1;
            const u32 f0_11 = f0_10 ^ f0;
            const u32 f0_12 = f3 ^ f2;
            const u32 f0_13 = f0_12 ^ f0;
            const u32 f0_14 = f0_12 ^ f1;
            const u32 f0_15 = f0_14 ^ f0;
            const u32 f4_3 = f5 ^ f4;
            const u32 f4_5 = f6 ^ f4;
            const u32 f4_6 = f6 ^ f5;
            const u32 f4_7 = f4_6 ^ f4;
            const u32 f4_9 = f7 ^ f4;
            const u32 f4_10 = f7 ^ f5;
            const u32 f4_11 = f4_10 ^ f4;
            const u32 f4_12 = f7 ^ f6;
            const u32 f4_13 = f4_12 ^ f4;
            const u32 f4_14 = f4_12 ^ f5;
            const u32 f4_15 = f4_14 ^ f4;
            state[63] = state[55] ^ f0_13 ^ f4_10;
            state[62] = state[54] ^ f0_11 ^ f4_5;
            state[61] = state[53] ^ f0_6 ^ f4_11;
            state[60] = state[52] ^ f0_12 ^ f4_6;
            state[59] = state[51] ^ f0_9 ^ f4_13;
            state[58] = state[50] ^ f1 ^ f4_11;
            state[57] = state[49] ^ f2 ^ f4_6;
            state[56] = state[48] ^ f0_9 ^ f4_12;
            state[55] = state[47] ^ f0_3 ^ f4_9;
            state[54] = state[46] ^ f0_7 ^ f5;
            state[53] = state[45] ^ f0_15 ^ f6;
            state[52] = state[44] ^ f0_14 ^ f4_9;
            state[51] = state[43] ^ f0_13 ^ f4_3;
            state[50] = state[42] ^ f0_10 ^ f4_7;
            state[49] = state[41] ^ f2 ^ f4_15;
            state[48] = state[40] ^ f0_9 ^ f4_14;
            state[47] = state[39] ^ f1 ^ f4_13;
            state[46] = state[38] ^ f2 ^ f4_10;
            state[45] = state[37] ^ f3 ^ f6;
            state[44] = state[36] ^ f0 ^ f4_9;
            state[43] = state[35] ^ f0_3 ^ f5;
            state[42] = state[34] ^ f0_6 ^ f6;
            state[41] = state[33] ^ f0_13 ^ f7;
            state[40] = state[32] ^ f0_10 ^ f4;
            state[39] = state[31] ^ f0_5 ^ f4_3;
            state[38] = state[30] ^ f0_11 ^ f4_6;
            state[37] = state[29] ^ f0_6 ^ f4_13;
            state[36] = state[28] ^ f0_12 ^ f4_10;
            state[35] = state[27] ^ f0_9 ^ f4_5;
            state[34] = state[26] ^ f1 ^ f4_11;
            state[33] = state[25] ^ f0_5 ^ f4_6;
            state[32] = state[24] ^ f0_10 ^ f4_12;
            state[31] = state[23] ^ f2 ^ f4_9;
            state[30] = state[22] ^ f0_9 ^ f5;
            state[29] = state[21] ^ f0_3 ^ f4_5;
            state[28] = state[20] ^ f0_6 ^ f4_10;
            state[27] = state[19] ^ f0_12 ^ f6;
            state[26] = state[18] ^ f0_9 ^ f4_9;
            state[25] = state[17] ^ f1 ^ f4_3;
            state[24] = state[16] ^ f2 ^ f4_6;
            state[23] = state[15] ^ f0_9 ^ f4_12;
            state[22] = state[14] ^ f1 ^ f4_9;
            state[21] = state[13] ^ f2 ^ f5;
            state[20] = state[12] ^ f0_9 ^ f6;
            state[19] = state[11] ^ f0_3 ^ f4_9;
            state[18] = state[10] ^ f0_6 ^ f5;
            state[17] = state[9] ^ f0_13 ^ f6;
            state[16] = state[8] ^ f0_11 ^ f4_9;
            state[15] = state[7] ^ f0_6 ^ f4_3;
            state[14] = state[6] ^ f0_12 ^ f4_6;
            state[13] = state[5] ^ f0_9 ^ f4_13;
            state[12] = state[4] ^ f1 ^ f4_11;
            state[11] = state[3] ^ f0_5 ^ f4_6;
            state[10] = state[2] ^ f0_11 ^ f4_12;
            state[9] = state[1] ^ f0_6 ^ f4_9;
            state[8] = state[0] ^ f0_12 ^ f5;
            state[7] = word[0] ^ f0_9 ^ f4_5;
            state[6] = word[1] ^ f1 ^ f4_11;
            state[5] = word[2] ^ f2 ^ f4_6;
            state[4] = word[3] ^ f3 ^ f4_12;
            state[3] = word[4] ^ f4_9;
            state[2] = word[5] ^ f5;
            state[1] = word[6] ^ f6;
            state[0] = word[7] ^ f7;
        }
        u32* rows = shortened + c * 64ull * lanes + lane;
#pragma unroll
        for (u32 i = 0; i < 64u; i++) rows[(u64)(63u - i) * lanes] = state[i];
    }
}

// CRC-64/NVME of many ranges of memory at once: any length, any alignment, table look-ups.
//
// One text for CuPy, NVRTC, g++ (tests/kernels) and the disassembler: no #include, no library function, own types.
//
// The remainder here is the raw one, without the CRC's initial and final inversion: M(x)·x^64 mod P(x). It is linear, and zero bytes
// in front of a message change nothing; so a chunk is aligned to its end and thought of as padded in front. The host adds the
// inversions (kernel_device.py). Polynomials are reflected as in the CRC's definition: bit 63 of a word is the coefficient of x^0.
//
// A block takes one chunk at a time. Its T lanes take the words of a row, T neighbours, and go from row to row by Horner's rule:
// state = state·x^(64T) + word. The factor is a constant, so the product is the XOR of 16 look-ups, one for each nibble of the state.
// A table of 16 words covers the 32 banks of shared memory exactly once: lanes that look up different nibbles never wait for
// each other.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

// P(x) = 0xAD93D23594C93659, reflected (NVM Express NVM Command Set Specification, "64b CRC").
#define POLYNOMIAL 0x9A6C9329AC4BC9B5ull
#define NIBBLES 16u
#define TABLE_WORDS 256u
#define MOST_WARPS 8u

static __device__ __forceinline__ u64 multiply(u64 a, u64 b) {
    u64 product = 0;
#pragma unroll 4
    for (int i = 0; i < 64; i++) {
        product ^= (0ull - (a >> 63)) & b;
        a <<= 1;
        b = (b >> 1) ^ ((0ull - (b & 1ull)) & POLYNOMIAL);
    }
    return product;
}

// The eight bytes that begin `from_end` bytes before the end of the chunk, little-endian; bytes before its beginning read as zero.
// `shift` is 8 × (address of the end mod 8), the same for all words of the chunk. Never reads outside the chunk.
static __device__ __forceinline__ u64 load_word(const u8* chunk, u64 length, u64 from_end, u32 shift) {
    u64 misaligned = shift >> 3;
    if (from_end <= length) {
        const u8* place = chunk + (length - from_end);
        if (shift == 0u) return *(const u64*)place;
        if (from_end + misaligned <= length && from_end + misaligned >= 16ull) {
            const u64* aligned = (const u64*)(place - misaligned);
            return (aligned[0] >> shift) | (aligned[1] << (64u - shift));
        }
    }
    u64 word = 0;
    for (u32 k = 0; k < 8u; k++) {
        u64 left = from_end - k;
        if (left <= length) word |= (u64)chunk[length - left] << (8u * k);
    }
    return word;
}

// row_factor: 16 tables of 16 words, entry [j·16 + v] = (v << 4j)·x^(64T). lane_factor[t] = x^(64(T − t)).
// remainder[c] = raw remainder of chunk c.
extern "C" __global__ void __launch_bounds__(256)
crc64_chunks(const u8* buffer, const u64* offset, const u64* length, u64* remainder, u64 chunks, const u64* row_factor,
             const u64* lane_factor) {
    __shared__ u64 table[TABLE_WORDS];
    __shared__ u64 of_warp[MOST_WARPS];
    const u32 lane = threadIdx.x, lanes = blockDim.x;
    for (u32 i = lane; i < TABLE_WORDS; i += lanes) table[i] = row_factor[i];
    __syncthreads();  // the table is whole
    for (u64 c = blockIdx.x; c < chunks; c += gridDim.x) {
        const u8* chunk = buffer + offset[c];
        const u64 nbytes = length[c];
        const u32 shift = (u32)((u64)(chunk + nbytes) & 7ull) * 8u;
        const u64 words = (nbytes + 7ull) / 8ull, rows = (words + lanes - 1ull) / lanes, padding = rows * lanes - words;
        u64 state = 0;
        // The next word is on its way while this one is worked in.
        u64 coming = rows && lane >= padding ? load_word(chunk, nbytes, (rows * lanes - lane) * 8ull, shift) : 0ull;
        for (u64 row = 0; row < rows; row++) {
            const u64 word = coming;
            if (row + 1ull < rows) coming = load_word(chunk, nbytes, ((rows - row - 1ull) * lanes - lane) * 8ull, shift);
            u64 product = 0;
#pragma unroll
            for (u32 j = 0; j < NIBBLES; j++) product ^= table[j * 16u + (u32)((state >> (4u * j)) & 15ull)];
            state = product ^ word;
        }
        state = multiply(state, lane_factor[lane]);
        for (u32 distance = 16u; distance; distance >>= 1) state ^= __shfl_xor_sync(0xffffffffu, state, distance);
        if ((lane & 31u) == 0u) of_warp[lane >> 5] = state;
        __syncthreads();  // every warp has left its sum
        if (lane == 0u) {
            u64 sum = 0;
            for (u32 w = 0; w < lanes / 32u; w++) sum ^= of_warp[w];
            remainder[c] = sum;
        }
        __syncthreads();  // and it was taken, before the next chunk's
    }
}

// Puts the chunks of each piece together: sum[piece[c]] ^= remainder[c]·x^(8·after[c]), with after[c] the bytes of the piece behind
// chunk c. XOR has no order, so the result is the same on every run. square[k] = x^(2^k).
extern "C" __global__ void __launch_bounds__(256)
crc64_combine(const u64* remainder, const u64* after, const u64* piece, u64* sum, u64 chunks, const u64* square) {
    const u64 c = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= chunks) return;
    u64 value = remainder[c];
    const u64 exponent = after[c] * 8ull;
    for (u32 k = 0; k < 64u && (exponent >> k) != 0ull; k++)
        if ((exponent >> k) & 1ull) value = multiply(value, square[k]);
    atomicXor(sum + piece[c], value);
}

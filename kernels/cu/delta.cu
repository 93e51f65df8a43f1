// Differences of integers, zigzag-coded, and back: planes.py says what for and is the same on the CPU.
//
// One text for CuPy, NVRTC, g++ (tests/kernels) and the disassembler: no #include, no library function, own types.
//
// Eight bytes a load, as many elements as they hold; where an address forbids it, and for the last few, element by element in bytes.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

template <typename Word>
static __device__ __forceinline__ Word load_bytes(const u8* place) {
    u64 word = 0;
    for (u32 k = 0; k < sizeof(Word); k++) word |= (u64)place[k] << (8u * k);
    return (Word)word;
}

template <typename Word>
static __device__ __forceinline__ void store_bytes(u8* place, Word word) {
    for (u32 k = 0; k < sizeof(Word); k++) place[k] = (u8)((u64)word >> (8u * k));
}

template <typename Word>
struct Encode {
    static __device__ __forceinline__ Word of(Word after, Word before) {
        const Word change = (Word)(after - before);
        const u64 negative = (u64)change >> (8u * sizeof(Word) - 1u);
        return (Word)(((u64)change << 1) ^ (0ull - negative));
    }
};

template <typename Word>
struct Decode {
    static __device__ __forceinline__ Word of(Word code, Word before) {
        const Word change = (Word)(((u64)code >> 1) ^ (0ull - ((u64)code & 1ull)));
        return (Word)(before + change);
    }
};

template <typename Word, typename Operation>
static __device__ __forceinline__ void each(const u8* left, const u8* base, u8* result, u64 elements) {
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    const u32 in_word = 8u / (u32)sizeof(Word), bits = 8u * (u32)sizeof(Word);
    const u64 words = (((u64)left | (u64)base | (u64)result) & 7ull) == 0ull ? elements / in_word : 0ull;
    for (u64 i = first; i < words; i += step) {
        const u64 a = ((const u64*)left)[i], b = ((const u64*)base)[i];
        u64 packed = 0;
#pragma unroll
        for (u32 k = 0; k < in_word; k++)
            packed |= (u64)Operation::of((Word)(a >> (k * bits)), (Word)(b >> (k * bits))) << (k * bits);
        ((u64*)result)[i] = packed;
    }
    for (u64 i = words * in_word + first; i < elements; i += step) {
        const u64 at = i * sizeof(Word);
        store_bytes<Word>(result + at, Operation::of(load_bytes<Word>(left + at), load_bytes<Word>(base + at)));
    }
}

extern "C" __global__ void __launch_bounds__(256) delta_encode_1(const u8* after, const u8* base, u8* code, u64 elements) {
    each<u8, Encode<u8> >(after, base, code, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_decode_1(const u8* code, const u8* base, u8* after, u64 elements) {
    each<u8, Decode<u8> >(code, base, after, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_encode_2(const u8* after, const u8* base, u8* code, u64 elements) {
    each<u16, Encode<u16> >(after, base, code, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_decode_2(const u8* code, const u8* base, u8* after, u64 elements) {
    each<u16, Decode<u16> >(code, base, after, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_encode_4(const u8* after, const u8* base, u8* code, u64 elements) {
    each<u32, Encode<u32> >(after, base, code, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_decode_4(const u8* code, const u8* base, u8* after, u64 elements) {
    each<u32, Decode<u32> >(code, base, after, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_encode_8(const u8* after, const u8* base, u8* code, u64 elements) {
    each<u64, Encode<u64> >(after, base, code, elements);
}

extern "C" __global__ void __launch_bounds__(256) delta_decode_8(const u8* code, const u8* base, u8* after, u64 elements) {
    each<u64, Decode<u64> >(code, base, after, elements);
}

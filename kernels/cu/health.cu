// The health of numbers: counts of NaN, infinite, saturated, subnormal and zero elements, and a histogram of exponents.
//
// One text for CuPy, NVRTC, g++ (tests/kernels) and the disassembler: no #include, no library function, own types. Works on bit
// patterns, so half precision needs no cuda_fp16.h. number_formats.py says where the borders come from; health.py is the same on
// the CPU.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

// Places in `counts`.
#define NOT_A_NUMBER 0
#define POSITIVE_INFINITY 1
#define NEGATIVE_INFINITY 2
#define SATURATED 3
#define SUBNORMAL 4
#define ZERO 5
#define KINDS 6u
// Bits of `quirks`.
#define NEGATIVE_ZERO_IS_NAN 1u
#define NO_ZERO 2u

// 2048 exponents of float64, or a histogram of at most 256 for each of the block's eight warps: weights have few exponents, and all
// threads of a block would queue for the same few counters.
#define HISTOGRAM_WORDS 2048u

// Number is what patterns are compared in: u32 up to that width, because 64 bits cost two instructions where 32 do with one.
template <typename Number>
struct Format {
    u32 mantissa_bits, quirks;
    Number sign, largest, infinity;
};

// A number at any address, byte by byte.
template <typename Pattern>
static __device__ __forceinline__ Pattern load_bytes(const u8* place) {
    u64 pattern = 0;
    for (u32 k = 0; k < sizeof(Pattern); k++) pattern |= (u64)place[k] << (8u * k);
    return (Pattern)pattern;
}

// Enters the number into the histogram and says whether there is more to it: all but normal numbers below the largest.
template <typename Number>
static __device__ __forceinline__ bool is_remarkable(Number pattern, const Format<Number>& format, u32* histogram) {
    const Number magnitude = pattern & ~format.sign, smallest_normal = (Number)1u << format.mantissa_bits;
    if (histogram) atomicAdd(histogram + (u32)(magnitude >> format.mantissa_bits), 1u);
    return magnitude - smallest_normal >= format.largest - smallest_normal;
}

template <typename Number>
static __device__ __forceinline__ void judge(Number pattern, const Format<Number>& format, u32* found) {
    const Number magnitude = pattern & ~format.sign;
    if (magnitude < format.largest) {
        if (magnitude)
            found[SUBNORMAL]++;
        else if (pattern && (format.quirks & NEGATIVE_ZERO_IS_NAN))
            found[NOT_A_NUMBER]++;
        else if (!(format.quirks & NO_ZERO))
            found[ZERO]++;
    } else if (magnitude == format.largest) {
        found[SATURATED]++;
    } else if (magnitude == format.infinity) {  // 0 where the format has none, and magnitude is not 0 here
        if (pattern & format.sign)
            found[NEGATIVE_INFINITY]++;
        else
            found[POSITIVE_INFINITY]++;
    } else {
        found[NOT_A_NUMBER]++;
    }
}

template <typename Pattern, typename Number>
static __device__ __forceinline__ void count(const u8* buffer, u64 elements, const Format<Number>& format, u64* counts,
                                             u64* exponents, u32 bins) {
    __shared__ u32 histograms[HISTOGRAM_WORDS];
    __shared__ u32 of_block[KINDS];
    const u32 lane = threadIdx.x, lanes = blockDim.x;
    for (u32 i = lane; i < HISTOGRAM_WORDS; i += lanes) histograms[i] = 0u;
    if (lane < KINDS) of_block[lane] = 0u;
    __syncthreads();  // all counters are zero

    const u32 warps = lanes / 32u, copies = bins * warps <= HISTOGRAM_WORDS ? warps : 1u;
    u32* mine = bins ? histograms + (lane / 32u % copies) * bins : (u32*)0;
    u32 found[KINDS] = {0u, 0u, 0u, 0u, 0u, 0u};
    const u64 first = (u64)blockIdx.x * lanes + lane, step = (u64)gridDim.x * lanes;
    const u32 in_word = 8u / (u32)sizeof(Pattern), bits = 8u * (u32)sizeof(Pattern);
    // Eight bytes a load where the address allows it; what is left, or everything, byte by byte.
    const u64 words = ((u64)buffer & 7ull) == 0ull ? elements / in_word : 0ull;
    for (u64 i = first; i < words; i += step) {
        const u64 word = ((const u64*)buffer)[i];
        u32 remarkable = 0;
#pragma unroll
        for (u32 k = 0; k < in_word; k++)
            remarkable |= (u32)is_remarkable<Number>((Pattern)(word >> (k * bits)), format, mine) << k;
#pragma unroll 1
        for (u32 k = 0; k < in_word && (remarkable >> k) != 0u; k++)
            if ((remarkable >> k) & 1u) judge<Number>((Pattern)(word >> (k * bits)), format, found);
    }
    for (u64 i = words * in_word + first; i < elements; i += step) {
        const Pattern pattern = load_bytes<Pattern>(buffer + i * sizeof(Pattern));
        if (is_remarkable<Number>(pattern, format, mine)) judge<Number>(pattern, format, found);
    }

#pragma unroll
    for (u32 kind = 0; kind < KINDS; kind++)
        if (found[kind]) atomicAdd(of_block + kind, found[kind]);
    __syncthreads();  // every lane has added what it found
    if (lane < KINDS && of_block[lane]) atomicAdd(counts + lane, (u64)of_block[lane]);
    for (u32 bin = lane; bin < bins; bin += lanes) {
        u64 sum = 0;
        for (u32 copy = 0; copy < copies; copy++) sum += histograms[copy * bins + bin];
        if (sum) atomicAdd(exponents + bin, sum);
    }
}

// `bins` is the number of values of the exponent field, or 0 for no histogram. A block counts in 32 bits: the host gives it fewer
// than 2^32 elements (kernel_device.py).

extern "C" __global__ void __launch_bounds__(256)
health_1(const u8* buffer, u64 elements, u32 mantissa_bits, u32 quirks, u64 sign, u64 largest, u64 infinity, u64* counts,
         u64* exponents, u32 bins) {
    const Format<u32> format = {mantissa_bits, quirks, (u32)sign, (u32)largest, (u32)infinity};
    count<u8>(buffer, elements, format, counts, exponents, bins);
}

extern "C" __global__ void __launch_bounds__(256)
health_2(const u8* buffer, u64 elements, u32 mantissa_bits, u32 quirks, u64 sign, u64 largest, u64 infinity, u64* counts,
         u64* exponents, u32 bins) {
    const Format<u32> format = {mantissa_bits, quirks, (u32)sign, (u32)largest, (u32)infinity};
    count<u16>(buffer, elements, format, counts, exponents, bins);
}

extern "C" __global__ void __launch_bounds__(256)
health_4(const u8* buffer, u64 elements, u32 mantissa_bits, u32 quirks, u64 sign, u64 largest, u64 infinity, u64* counts,
         u64* exponents, u32 bins) {
    const Format<u32> format = {mantissa_bits, quirks, (u32)sign, (u32)largest, (u32)infinity};
    count<u32>(buffer, elements, format, counts, exponents, bins);
}

extern "C" __global__ void __launch_bounds__(256)
health_8(const u8* buffer, u64 elements, u32 mantissa_bits, u32 quirks, u64 sign, u64 largest, u64 infinity, u64* counts,
         u64* exponents, u32 bins) {
    const Format<u64> format = {mantissa_bits, quirks, sign, largest, infinity};
    count<u64>(buffer, elements, format, counts, exponents, bins);
}

// Byte planes and back: all first bytes of the elements, then all second ones, and so on.
//
// One text for CuPy, NVRTC, g++ (tests/kernels) and the disassembler: no #include, no library function, own types.
//
// Four elements at a time: a lane loads their bytes as WIDTH words of four and stores one word into each plane. Byte j of the word
// of plane p is byte p of element j, which lies in loaded word (j·WIDTH + p)/4. Where an address or the number of elements forbids
// words, bytes go one by one.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

static __device__ __forceinline__ bool words_allowed(const u8* elements_at, const u8* planes_at, u64 elements) {
    return (((u64)elements_at | (u64)planes_at | elements) & 3ull) == 0ull;
}

template <u32 WIDTH>
static __device__ __forceinline__ void split(const u8* source, u8* planes, u64 elements) {
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    const u64 quads = words_allowed(source, planes, elements) ? elements / 4ull : 0ull;
    for (u64 quad = first; quad < quads; quad += step) {
        u32 loaded[WIDTH];
#pragma unroll
        for (u32 k = 0; k < WIDTH; k++) loaded[k] = ((const u32*)source)[quad * WIDTH + k];
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u32 word = 0;
#pragma unroll
            for (u32 j = 0; j < 4u; j++) {
                const u32 byte = j * WIDTH + plane;
                word |= ((loaded[byte / 4u] >> (8u * (byte % 4u))) & 255u) << (8u * j);
            }
            ((u32*)(planes + plane * elements))[quad] = word;
        }
    }
    for (u64 i = quads * 4ull + first; i < elements; i += step)
        for (u32 plane = 0; plane < WIDTH; plane++) planes[plane * elements + i] = source[i * WIDTH + plane];
}

template <u32 WIDTH>
static __device__ __forceinline__ void join(const u8* planes, u8* target, u64 elements) {
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    const u64 quads = words_allowed(target, planes, elements) ? elements / 4ull : 0ull;
    for (u64 quad = first; quad < quads; quad += step) {
        u32 loaded[WIDTH];
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) loaded[plane] = ((const u32*)(planes + plane * elements))[quad];
#pragma unroll
        for (u32 k = 0; k < WIDTH; k++) {
            u32 word = 0;
#pragma unroll
            for (u32 j = 0; j < 4u; j++) {
                const u32 byte = 4u * k + j;
                word |= ((loaded[byte % WIDTH] >> (8u * (byte / WIDTH))) & 255u) << (8u * j);
            }
            ((u32*)target)[quad * WIDTH + k] = word;
        }
    }
    for (u64 i = quads * 4ull + first; i < elements; i += step)
        for (u32 plane = 0; plane < WIDTH; plane++) target[i * WIDTH + plane] = planes[plane * elements + i];
}

extern "C" __global__ void __launch_bounds__(256) split_planes_2(const u8* source, u8* planes, u64 elements) {
    split<2u>(source, planes, elements);
}

extern "C" __global__ void __launch_bounds__(256) join_planes_2(const u8* planes, u8* target, u64 elements) {
    join<2u>(planes, target, elements);
}

extern "C" __global__ void __launch_bounds__(256) split_planes_4(const u8* source, u8* planes, u64 elements) {
    split<4u>(source, planes, elements);
}

extern "C" __global__ void __launch_bounds__(256) join_planes_4(const u8* planes, u8* target, u64 elements) {
    join<4u>(planes, target, elements);
}

extern "C" __global__ void __launch_bounds__(256) split_planes_8(const u8* source, u8* planes, u64 elements) {
    split<8u>(source, planes, elements);
}

extern "C" __global__ void __launch_bounds__(256) join_planes_8(const u8* planes, u8* target, u64 elements) {
    join<8u>(planes, target, elements);
}

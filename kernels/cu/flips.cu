// Flips bits in place. The host has put the places into order, one entry a byte (flips.py), so no two lanes meet in one byte.
//
// One text for CuPy, NVRTC, g++ (tests/kernels) and the disassembler: no #include, no library function, own types.

typedef unsigned long long u64;
typedef unsigned char u8;

extern "C" __global__ void __launch_bounds__(256) flip_bytes(u8* buffer, const u64* place, const u8* mask, u64 places) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < places) buffer[place[i]] ^= mask[i];
}

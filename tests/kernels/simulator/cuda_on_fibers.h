// Runs the kernels of a .cu text on the CPU, to find faults and not to be fast: each CUDA thread is a fiber, one block at a time.
//
// What it finds: missing barriers (shared memory is filled with 0xA5 before every block, and threads run forwards, backwards or in a
// seeded order), threads that wait at different barriers, barriers behind an early exit, shuffles from lanes outside the mask, and,
// through the handlers at the end, what the compiler's undefined-behaviour checks report: misaligned loads (a GPU faults, x86 does
// not), shifts by the width (PTX clamps, x86 masks), indices out of bounds.
// What it cannot find: races that happen to agree, faults of the memory model, anything about speed.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <tuple>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("shared_memory")))
#define __constant__ static const

extern "C" char __start_shared_memory[] __attribute__((weak));
extern "C" char __stop_shared_memory[] __attribute__((weak));

struct Index {
    unsigned x = 0, y = 0, z = 0;
};

namespace fibers {

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
enum Order { FORWARDS, BACKWARDS, SEEDED };
constexpr unsigned char POISON = 0xA5;
constexpr size_t STACK_BYTES = 1 << 16;
constexpr unsigned WARP = 32, MOST_THREADS = 1024;

#if defined(__x86_64__)
// Saves what a called function has to keep, and exchanges stacks (System V ABI, 3.2.1).
struct Context {
    void* stack_pointer;
};
extern "C" void fibers_switch(void** save_here, void* continue_there);
asm(R"(
.text
.globl fibers_switch
.hidden fibers_switch
.type fibers_switch,@function
fibers_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size fibers_switch,.-fibers_switch
)");
static inline void change(Context* from, Context* to) { fibers_switch(&from->stack_pointer, to->stack_pointer); }
static inline void prepare(Context* context, char* stack, void (*entry)()) {
    void** top = (void**)(stack + STACK_BYTES);
    *--top = nullptr;  // keeps the stack aligned as after a call
    *--top = (void*)entry;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    context->stack_pointer = top;
}
#else
struct Context {
    ucontext_t saved;
};
static inline void change(Context* from, Context* to) { swapcontext(&from->saved, &to->saved); }
static inline void prepare(Context* context, char* stack, void (*entry)()) {
    getcontext(&context->saved);
    context->saved.uc_stack.ss_sp = stack;
    context->saved.uc_stack.ss_size = STACK_BYTES;
    context->saved.uc_link = nullptr;
    makecontext(&context->saved, entry, 0);
}
#endif

struct Fiber {
    Context context;
    char* stack;
    State state;
    int place;  // of the barrier in the text
    unsigned mask;
    unsigned long long given;  // to a shuffle or a vote
    unsigned number;
    Index thread;
};

static std::vector<Fiber> all;
static Fiber* running;
static Context scheduler;
static Index block_index, block_size, grid_size;
static void (*body)(void*);
static void* body_argument;
static char problem[256];
static int order = FORWARDS;
static unsigned seed = 1, random_state = 1;
static unsigned long long block_barriers;

static inline void report(const char* what) {
    if (!problem[0]) snprintf(problem, sizeof problem, "%s", what);
}

static inline void pause_as(State state, int place, unsigned mask = 0) {
    running->state = state;
    running->place = place;
    running->mask = mask;
    change(&running->context, &scheduler);
}

static void life() {
    for (;;) {
        body(body_argument);
        pause_as(DONE, 0);
    }
}

static inline unsigned draw() {  // xorshift32 (Marsaglia 2003)
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static inline Fiber* in_warp(unsigned first, unsigned lane) {
    return first + lane < all.size() ? &all[first + lane] : nullptr;
}

// Lets the lanes go on that wait for the same warp operation, once every lane of their mask has come.
static bool release_warp(unsigned first) {
    bool released = false;
    for (unsigned lane = 0; lane < WARP; lane++) {
        Fiber* fiber = in_warp(first, lane);
        if (!fiber || fiber->state != AT_WARP_BARRIER) continue;
        if (!(fiber->mask >> lane & 1u)) report("a lane calls a warp operation whose mask does not name it");
        bool complete = true;
        for (unsigned other = 0; other < WARP; other++) {
            if (!(fiber->mask >> other & 1u)) continue;
            Fiber* named = in_warp(first, other);
            if (!named || named->state == DONE) {
                report("a warp operation names a lane that has ended");
                continue;
            }
            if (named->state != AT_WARP_BARRIER || named->mask != fiber->mask || named->place != fiber->place) complete = false;
        }
        if (!complete) continue;
        const unsigned mask = fiber->mask;
        for (unsigned other = 0; other < WARP; other++)
            if ((mask >> other & 1u) && in_warp(first, other)) in_warp(first, other)->state = READY;
        released = true;
    }
    return released;
}

static bool release_block() {
    unsigned waiting = 0, done = 0;
    int place = -1;
    for (Fiber& fiber : all) {
        if (fiber.state == DONE) done++;
        if (fiber.state != AT_BLOCK_BARRIER) continue;
        waiting++;
        if (place >= 0 && place != fiber.place) report("threads of a block wait at different barriers");
        place = fiber.place;
    }
    if (!waiting || waiting + done < all.size()) return false;
    if (done) report("a barrier that threads of the block have left out");
    for (Fiber& fiber : all) fiber.state = READY;
    block_barriers++;
    return true;
}

// Whoever can go on and stands first goes on, again and again: the first warps run as far ahead as the barriers let them.
static bool run_by_rank(unsigned threads, unsigned* left) {
    bool progress = false;
    for (unsigned rank = 0; rank < threads; rank++) {
        Fiber* const fiber = &all[order == BACKWARDS ? threads - 1 - rank : rank];
        if (fiber->state != READY) continue;
        progress = true;
        running = fiber;
        change(&scheduler, &fiber->context);
        if (fiber->state == DONE) --*left;
        if (fiber->state == AT_WARP_BARRIER && release_warp(fiber->number / WARP * WARP)) rank = -1u;
    }
    return progress;
}

// Every thread that can go on, in an order that changes with every round; now and then a warp is left behind.
static bool run_seeded(unsigned threads, unsigned* left) {
    const unsigned start = draw() % threads, late = draw() % (2u * threads) / WARP;
    unsigned step;
    do step = draw() % threads | 1u;
    while (std::gcd(step, threads) != 1u);
    bool progress = false, somebody_late = false;
    for (unsigned k = 0; k < threads; k++) {
        Fiber* const fiber = &all[(start + (unsigned long long)k * step) % threads];
        if (fiber->state != READY) continue;
        if (fiber->number / WARP == late) {
            somebody_late = true;
            continue;
        }
        progress = true;
        running = fiber;
        change(&scheduler, &fiber->context);
        if (fiber->state == DONE) --*left;
    }
    return progress || somebody_late;
}

static void run_block(unsigned threads) {
    for (unsigned i = all.size(); i < threads; i++) {
        Fiber fiber = {};
        fiber.stack = (char*)mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fiber.stack == MAP_FAILED) abort();
        all.push_back(fiber);
    }
    while (all.size() > threads) {
        munmap(all.back().stack, STACK_BYTES);
        all.pop_back();
    }
    for (unsigned i = 0; i < threads; i++) {
        prepare(&all[i].context, all[i].stack, life);
        all[i].state = READY;
        all[i].number = i;
        all[i].thread.x = i;
    }
    unsigned left = threads;
    while (left && !problem[0]) {
        bool progress = order == SEEDED ? run_seeded(threads, &left) : run_by_rank(threads, &left);
        for (unsigned first = 0; first < threads; first += WARP) progress |= release_warp(first);
        progress |= release_block();
        if (!progress) report("deadlock: threads wait for others that never come");
    }
}

template <class... Parameters>
struct Call {
    void (*kernel)(Parameters...);
    void** arguments;
};

template <class... Parameters, size_t... places>
static void enter(const Call<Parameters...>& call, std::index_sequence<places...>) {
    call.kernel(*(std::remove_reference_t<Parameters>*)call.arguments[places]...);
}

// The blocks run one by one, in the order of the threads: no block may count on another.
template <class... Parameters>
static int launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, void** arguments, char* said, size_t room) {
    Call<Parameters...> call{kernel, arguments};
    problem[0] = 0;
    block_barriers = 0;
    grid_size = {blocks, 1, 1};
    block_size = {threads, 1, 1};
    if (!threads || threads > MOST_THREADS) report("a block of no threads, or of more than 1024");
    body_argument = &call;
    body = [](void* argument) { enter(*(Call<Parameters...>*)argument, std::index_sequence_for<Parameters...>{}); };
    for (unsigned i = 0; i < blocks && !problem[0]; i++) {
        block_index = {order == BACKWARDS ? blocks - 1 - i : i, 1, 1};
        random_state = seed * 2654435761u + i * 40503u + 1u;
        if (!random_state) random_state = 1u;
        if (__start_shared_memory) memset(__start_shared_memory, POISON, __stop_shared_memory - __start_shared_memory);
        run_block(threads);
    }
    snprintf(said, room, "%s", problem);
    return problem[0] != 0;
}

template <class Value>
static Value exchange(unsigned mask, Value value, unsigned from, int place) {
    static_assert(sizeof(Value) <= 8, "a shuffle moves at most eight bytes");
    Fiber* const me = running;
    const unsigned first = me->number / WARP * WARP;
    me->given = 0;
    memcpy(&me->given, &value, sizeof value);
    pause_as(AT_WARP_BARRIER, 2 * place, mask);
    if (from >= WARP || !(mask >> from & 1u)) report("a shuffle reads a lane outside its mask");
    Fiber* const source = in_warp(first, from % WARP);
    Value got = value;
    if (source) memcpy(&got, &source->given, sizeof got);
    pause_as(AT_WARP_BARRIER, 2 * place + 1, mask);  // nobody gives anew before everybody has read
    return got;
}

}  // namespace fibers

#define threadIdx (fibers::running->thread)
#define blockIdx (fibers::block_index)
#define blockDim (fibers::block_size)
#define gridDim (fibers::grid_size)
#define __syncthreads() fibers::pause_as(fibers::AT_BLOCK_BARRIER, __COUNTER__)
#define __shfl_xor_sync(mask, value, distance) \
    fibers::exchange((mask), (value), (fibers::running->number % fibers::WARP) ^ (unsigned)(distance), __COUNTER__)

template <class Value>
static Value atomicAdd(Value* place, Value value) {
    return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}
template <class Value>
static Value atomicXor(Value* place, Value value) {
    return __atomic_fetch_xor(place, value, __ATOMIC_RELAXED);
}

extern "C" void fibers_configure(int order, unsigned seed) {
    fibers::order = order;
    fibers::seed = seed;
}

#define EXPORT_KERNEL(kernel)                                                                                          \
    extern "C" int kernel##_launch(unsigned blocks, unsigned threads, void** arguments, char* said, size_t room) {     \
        return fibers::launch(kernel, blocks, threads, arguments, said, room);                                         \
    }

// What -fsanitize calls; ours instead of libubsan's, so that a finding becomes the launch's error and the next test can run. The
// first member of what it points to is a source location (libsanitizer, ubsan_handlers.h).
struct SourceLocation {
    const char* file;
    unsigned line, column;
};
#define FINDING(handler, what, ...)                                                                                    \
    extern "C" __attribute__((visibility("hidden"))) void handler(SourceLocation* at, ##__VA_ARGS__) {                 \
        char text[160];                                                                                                \
        snprintf(text, sizeof text, "%s, line %u", what, at->line);                                                    \
        fibers::report(text);                                                                                          \
    }
FINDING(__ubsan_handle_shift_out_of_bounds, "a shift by the width or more", void*, void*)
FINDING(__ubsan_handle_type_mismatch_v1, "a misaligned access", void*)
FINDING(__ubsan_handle_out_of_bounds, "an index out of bounds", void*)
FINDING(__ubsan_handle_add_overflow, "a signed overflow", void*, void*)
FINDING(__ubsan_handle_sub_overflow, "a signed overflow", void*, void*)
FINDING(__ubsan_handle_mul_overflow, "a signed overflow", void*, void*)
FINDING(__ubsan_handle_negate_overflow, "a signed overflow", void*)
FINDING(__ubsan_handle_divrem_overflow, "a division by zero", void*, void*)

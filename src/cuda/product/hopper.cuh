// Hopper's (sm_90a) instructions for matrix products: the copy engine that brings pieces of matrices into shared
// memory, the barriers that tell of them, and products by four warps together.
//
// Every matrix moves in bricks of 64 x 64 elements of 16 bits: 64 rows of 128 bytes, whose runs of 16 bytes are swapped
// by the low three bits of the row so that no access meets a bank twice. A brick begins at a multiple of 1024 bytes.
// Elements outside of the matrix are read as zeros and not written.
// To be used where __CUDA_ARCH_FEAT_SM90_ALL is defined, by kernels that are launched on such cards alone.
#ifndef TRADEWIND_CUDA_PRODUCT_HOPPER_CUH
#define TRADEWIND_CUDA_PRODUCT_HOPPER_CUH

#include "cuda/cuda.cuh"

#include <cuda.h>

enum { BRICK = 64, BRICK_BYTES = BRICK * BRICK * 2, SWAPPED_ROWS_BYTES = 1024 };

CUDA_FN uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// Barriers: 8 bytes of shared memory each. A phase ends when `count` arrivals and all expected bytes are there.

CUDA_FN void barrier_init(uint32_t barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Behind all barrier_init, before the copy engine uses them.
CUDA_FN void barriers_show() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

CUDA_FN void barrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

CUDA_FN void barrier_arrive_expecting(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

CUDA_FN bool barrier_is_past(uint32_t barrier, int phase) {
    int past;
    asm volatile("{\n"
                 ".reg .pred past;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 past, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, past;\n"
                 "}"
                 : "=r"(past)
                 : "r"(barrier), "r"(phase)
                 : "memory");
    return past != 0;
}

// Until the phase of this parity has ended. A wait that never ends would take the card away from everybody: it is an
// error after seconds.
CUDA_FN void barrier_wait(uint32_t barrier, int phase) {
    for (int tries = 0; !barrier_is_past(barrier, phase); tries++)
        if (tries == 1 << 22) __trap();
}

// The threads of a block that share a number meet.
CUDA_FN void threads_meet(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// The copy engine. x counts elements along a row, y rows.

CUDA_FN void brick_announce(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

CUDA_FN void brick_load(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
}

// Asks for a brick that will be loaded later: it waits in the second-level cache, where memory is the same for all.
CUDA_FN void brick_foresee(const CUtensorMap *map, int x, int y) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y)
                 : "memory");
}

// Each thread that wrote a brick calls bricks_show before they meet and one of them stores it.
CUDA_FN void bricks_show() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

CUDA_FN void brick_store(const CUtensorMap *map, int x, int y, uint32_t from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from),
                 "r"(x), "r"(y)
                 : "memory");
}

// Until what this thread stored has left shared memory.
CUDA_FN void bricks_leave() {
    asm volatile("cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::
                     : "memory");
}

// Where a pair of elements lies in a brick; x is even.
CUDA_FN int brick_offset(int x, int y) {
    return y * 128 + (((x >> 3) ^ (y & 7)) << 4) + (x & 7) * 2;
}

// Products: four warps add to 64 x N sums, of which a thread has N / 2: numbers 4 j and 4 j + 1 are of row
// 16 warp + lane / 4, columns 8 j + 2 (lane % 4) and the next; 4 j + 2 and 4 j + 3 of the row eight further down.

// An operand in bricks, which follow one another along its wide side (A's rows of the product, B's columns). DEEP: the
// sum runs along the bricks' rows of elements; otherwise down their columns, and the distance of bricks matters. 16 of
// the sum's 64 steps further on is PIECE more, in the address that a description begins with.
template <bool DEEP> CUDA_FN uint64_t bricks_describe(uint32_t address) {
    uint64_t between = DEEP ? 1 : BRICK_BYTES >> 4, rows = SWAPPED_ROWS_BYTES >> 4, swaps = 1;
    return (uint64_t)((address & 0x3FFFF) >> 4) | between << 16 | rows << 32 | swaps << 62;
}

template <bool DEEP> CUDA_FN uint64_t bricks_piece(uint64_t description, int piece) {
    return description + (uint64_t)(piece * ((DEEP ? 32 : 16 * 128) >> 4));
}

// Before the first product of a batch, behind it, and until at most N batches are on their way.
CUDA_FN void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

CUDA_FN void products_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> CUDA_FN void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps the compiler's use of sums behind the wait for them.
template <int N> CUDA_FN void products_hold(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define HOPPER_NAMES10(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define HOPPER_NAMES32    HOPPER_NAMES10() HOPPER_NAMES10(1) HOPPER_NAMES10(2) "%30,%31"
#define HOPPER_NAMES64                                                                                                 \
    HOPPER_NAMES10()                                                                                                   \
    HOPPER_NAMES10(1) HOPPER_NAMES10(2) HOPPER_NAMES10(3) HOPPER_NAMES10(4) HOPPER_NAMES10(5) "%60,%61,%62,%63"
#define HOPPER_NAMES128                                                                                                \
    HOPPER_NAMES10()                                                                                                   \
    HOPPER_NAMES10(1)                                                                                                  \
    HOPPER_NAMES10(2)                                                                                                  \
    HOPPER_NAMES10(3)                                                                                                  \
    HOPPER_NAMES10(4)                                                                                                  \
    HOPPER_NAMES10(5)                                                                                                  \
    HOPPER_NAMES10(6)                                                                                                  \
    HOPPER_NAMES10(7)                                                                                                  \
    HOPPER_NAMES10(8)                                                                                                  \
    HOPPER_NAMES10(9) HOPPER_NAMES10(10) HOPPER_NAMES10(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define HOPPER_SUMS8(b)                                                                                                \
    "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3]), "+f"(d[b + 4]), "+f"(d[b + 5]), "+f"(d[b + 6]),        \
        "+f"(d[b + 7])
#define HOPPER_SUMS32(b)  HOPPER_SUMS8(b), HOPPER_SUMS8(b + 8), HOPPER_SUMS8(b + 16), HOPPER_SUMS8(b + 24)
#define HOPPER_SUMS64(b)  HOPPER_SUMS32(b), HOPPER_SUMS32(b + 32)
#define HOPPER_SUMS128(b) HOPPER_SUMS64(b), HOPPER_SUMS64(b + 64)

// d = A B, or d += A B where `add` says so: n columns in `count` sums, of operands of type T, described as above.
#define HOPPER_MULTIPLY(T, type, n, count, names, a_at, b_at, ta_at, tb_at, add_at, ...)                               \
    template <bool A_DEEP, bool B_DEEP>                                                                                \
    CUDA_FN void multiply_bricks(T, float(&d)[count], uint64_t a, uint64_t b, int add) {                               \
        asm volatile("{\n"                                                                                             \
                     ".reg .pred add;\n"                                                                               \
                     "setp.ne.b32 add, " add_at ", 0;\n"                                                               \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" names "}, " a_at ", " b_at   \
                     ", add, 1, 1, " ta_at ", " tb_at ";\n"                                                            \
                     "}"                                                                                               \
                     : __VA_ARGS__                                                                                     \
                     : "l"(a), "l"(b), "n"(A_DEEP ? 0 : 1), "n"(B_DEEP ? 0 : 1), "r"(add));                            \
    }
#define HOPPER_MULTIPLIES(T, type)                                                                                     \
    HOPPER_MULTIPLY(T, type, 64, 32, HOPPER_NAMES32, "%32", "%33", "%34", "%35", "%36", HOPPER_SUMS32(0))              \
    HOPPER_MULTIPLY(T, type, 128, 64, HOPPER_NAMES64, "%64", "%65", "%66", "%67", "%68", HOPPER_SUMS64(0))             \
    HOPPER_MULTIPLY(T, type, 256, 128, HOPPER_NAMES128, "%128", "%129", "%130", "%131", "%132", HOPPER_SUMS128(0))

HOPPER_MULTIPLIES(__nv_bfloat16, "bf16")
HOPPER_MULTIPLIES(__half, "f16")

#endif

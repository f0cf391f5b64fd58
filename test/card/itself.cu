// The card in software itself: it computes as the host does, and mistakes that it is there to find are found. A
// mistake ends the card for the process, so each is made in a process of its own. Runs in: make test-card.
#include <cuda_runtime.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

// Whole and broken numbers

enum { VALUES = 1000, WHOLE = 13, BROKEN = 5 };

struct answers {
    int64_t whole[WHOLE];
    double broken[BROKEN];
};

static __host__ __device__ void compute(int64_t x, int64_t y, double u, answers *a) {
    __int128 p = (__int128)x * y, q = p + ((__int128)y << 40), r = q - p * 3, d = p / 100000000;
    int64_t whole[WHOLE] = {(int64_t)p, (int64_t)(p >> 64), (int64_t)(q >> 64), (int64_t)(r >> 64), (int64_t)d,
        (int64_t)(d >> 64), (int64_t)(p % 100000000), x / y, x % y, (int64_t)((uint64_t)x / (uint64_t)y), p > q,
        (int32_t)x >> (y & 31), (int64_t)((uint32_t)x << (y & 31))};
    double broken[BROKEN] = {
        (double)x, (double)x / (double)y, (double)(uint64_t)x, (double)(int64_t)(u * 1000), sqrt(u)};
    memcpy(a->whole, whole, sizeof whole);
    memcpy(a->broken, broken, sizeof broken);
}

static __global__ void compute_kernel(const int64_t *x, const int64_t *y, const double *u, answers *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) compute(x[i], y[i], u[i], &a[i]);
}

template <typename T> static T *take(int n) {
    T *p = NULL;
    assert_int_equal(cudaMalloc((void **)&p, sizeof *p * (size_t)n), cudaSuccess);
    memset((void *)p, 0, sizeof *p * (size_t)n); // the host may look at this card's memory
    return p;
}

static int64_t any_number(void) {
    int64_t v = ((int64_t)rand() << 33 ^ (int64_t)rand() << 11 ^ rand()) >> rand() % 62;
    return v ? v : 3;
}

static void computes_as_the_host_does(void **state) {
    int64_t *x = take<int64_t>(VALUES), *y = take<int64_t>(VALUES);
    double *u = take<double>(VALUES);
    answers *a = take<answers>(VALUES);
    (void)state;
    for (int i = 0; i < VALUES; i++) x[i] = any_number(), y[i] = any_number(), u[i] = (rand() + 1.0) / 1e6;
    compute_kernel<<<(VALUES + 127) / 128, 128>>>(x, y, u, a, VALUES);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    for (int i = 0; i < VALUES; i++) {
        answers want;
        compute(x[i], y[i], u[i], &want);
        assert_memory_equal(&a[i], &want, sizeof want);
    }
}

// Mistakes

// The result of a function in a process of its own.
static int apart(int (*run)(void)) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(run());
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static __global__ void put_kernel(float *to, int at) {
    to[at] = 1;
}

static __global__ void put_pair_kernel(float *to, int at) {
    *(float2 *)(to + at) = make_float2(1, 2);
}

static __global__ void shared_kernel(float *to, int at) {
    __shared__ float room[32];
    room[threadIdx.x + at] = 1;
    to[threadIdx.x] = room[threadIdx.x];
}

static int put_inside(void) {
    put_kernel<<<1, 1>>>(take<float>(8), 7);
    return cudaGetLastError();
}

static int put_outside(void) {
    put_kernel<<<1, 1>>>(take<float>(8), 8);
    return cudaGetLastError();
}

static int put_misaligned(void) {
    put_pair_kernel<<<1, 1>>>(take<float>(8), 1);
    return cudaGetLastError();
}

static int put_outside_shared(void) {
    shared_kernel<<<1, 32>>>(take<float>(32), 1);
    return cudaGetLastError();
}

static void addresses_are_checked(void **state) {
    (void)state;
    assert_int_equal(apart(put_inside), cudaSuccess);
    assert_int_equal(apart(put_outside), cudaErrorIllegalAddress % 256);
    assert_int_equal(apart(put_misaligned), cudaErrorMisalignedAddress % 256);
    assert_int_equal(apart(put_outside_shared), cudaErrorIllegalAddress % 256);
}

// Each thread takes what a thread of the other warp has put down.
template <bool MEETS> static __global__ void exchange_kernel(int *to) {
    __shared__ int room[64];
    room[threadIdx.x] = (int)threadIdx.x;
    if (MEETS) __syncthreads();
    to[threadIdx.x] = room[threadIdx.x ^ 32];
}

// Number of orders, of both, that give the right result.
template <bool MEETS> static int good_exchanges(void) {
    static const char *const orders[] = {"recorded", "backwards"};
    int good = 0;
    for (int k = 0; k < 2; k++) {
        int *to = take<int>(64), right = 0;
        setenv("TRADEWIND_CARD_ORDER", orders[k], 1);
        exchange_kernel<MEETS><<<1, 64>>>(to);
        for (int i = 0; i < 64; i++) right += to[i] == (i ^ 32);
        good += right == 64;
    }
    return good;
}

static void a_missing_barrier_shows(void **state) {
    (void)state;
    assert_int_equal(apart(good_exchanges<true>), 2);
    assert_int_equal(apart(good_exchanges<false>), 0);
}

template <bool WAITS> static __global__ void copy_kernel(float *to, const float *from) {
    __shared__ __align__(16) float room[4];
    unsigned at = (unsigned)__cvta_generic_to_shared(room);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (WAITS) asm volatile("cp.async.wait_group 0;" ::: "memory");
    to[0] = room[3];
}

template <bool WAITS> static int copied(void) {
    float *from = take<float>(4), *to = take<float>(4);
    from[3] = 7;
    copy_kernel<WAITS><<<1, 1>>>(to, from);
    return to[0] == 7;
}

static void a_copy_that_is_not_waited_for_shows(void **state) {
    (void)state;
    assert_true(apart(copied<true>));
    assert_false(apart(copied<false>));
}

static __global__ void add_kernel(int *to, const int *from) {
    *to = *from + 1;
}

// Two launches on two streams, of which the second reads what the first has written; `ordered` by an event. How many of
// both orders give 2; 9 where the recording does not join the second stream.
static int play_both(bool ordered, bool joined) {
    static const char *const orders[] = {"recorded", "backwards"};
    int good = 0;
    for (int k = 0; k < 2; k++) {
        cudaStream_t s[2];
        cudaEvent_t e[3];
        cudaGraph_t graph;
        cudaGraphExec_t play;
        int *a = take<int>(3);
        setenv("TRADEWIND_CARD_ORDER", orders[k], 1);
        for (int i = 0; i < 2; i++) cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);
        for (int i = 0; i < 3; i++) cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming);
        cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal);
        cudaEventRecord(e[0], s[0]);
        cudaStreamWaitEvent(s[1], e[0], 0);
        add_kernel<<<1, 1, 0, s[0]>>>(&a[1], &a[0]);
        cudaEventRecord(e[1], s[0]);
        if (ordered) cudaStreamWaitEvent(s[1], e[1], 0);
        add_kernel<<<1, 1, 0, s[1]>>>(&a[2], &a[1]);
        cudaEventRecord(e[2], s[1]);
        if (joined) cudaStreamWaitEvent(s[0], e[2], 0);
        if (cudaStreamEndCapture(s[0], &graph) != cudaSuccess) return 9;
        cudaGraphInstantiate(&play, graph, 0);
        cudaGraphLaunch(play, s[0]);
        good += a[2] == 2;
    }
    return good;
}

static int in_order(void) {
    return play_both(true, true);
}
static int out_of_order(void) {
    return play_both(false, true);
}
static int unjoined(void) {
    return play_both(true, false);
}

static void a_missing_dependency_shows(void **state) {
    (void)state;
    assert_int_equal(apart(in_order), 2);
    assert_int_equal(apart(out_of_order), 1);
    assert_int_equal(apart(unjoined), 9);
}

// A sum over all lanes, to which half of a warp does not come.
static __device__ __noinline__ float sum_of_lanes(float v) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    return v;
}

template <int LANES> static __global__ void sum_kernel(float *to) {
    float v = (float)threadIdx.x;
    if (threadIdx.x < LANES) v = sum_of_lanes(v);
    to[threadIdx.x] = v;
}

template <int LANES> static int sum_lanes(void) {
    float *to = take<float>(32);
    sum_kernel<LANES><<<1, 32>>>(to);
    cudaError_t status = cudaGetLastError();
    return status == cudaSuccess && to[5] != 496 ? 1 : (int)status;
}

// Two warps wait at a barrier for three; the third leaves.
static __global__ void counted_kernel(float *to, int threads) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
    to[threadIdx.x] = 1;
}

static int meet_in_two(void) {
    counted_kernel<<<1, 96>>>(take<float>(96), 64);
    return cudaGetLastError();
}

static int meet_in_three(void) {
    counted_kernel<<<1, 96>>>(take<float>(96), 96);
    return cudaGetLastError();
}

static void lanes_and_warps_that_do_not_come_show(void **state) {
    (void)state;
    assert_int_equal(apart(sum_lanes<32>), cudaSuccess);
    assert_int_equal(apart(sum_lanes<16>), cudaErrorLaunchTimeout % 256);
    assert_int_equal(apart(meet_in_two), cudaSuccess);
    assert_int_equal(apart(meet_in_three), cudaErrorLaunchTimeout % 256);
}

static __global__ void wait_kernel(volatile int *flag) {
    while (!*flag)
        ;
}

static __global__ void meet_kernel(volatile int *flag) {
    if (blockIdx.x == 1) *flag = 1;
    while (!*flag)
        ;
}

static int wait_for_ever(void) {
    wait_kernel<<<1, 32>>>(take<int>(1));
    return cudaGetLastError();
}

static int blocks_meet(void) {
    meet_kernel<<<2, 32>>>(take<int>(1));
    return cudaGetLastError();
}

static void blocks_meet_or_wait_for_ever(void **state) {
    (void)state;
    assert_int_equal(apart(blocks_meet), cudaSuccess);
    assert_int_equal(apart(wait_for_ever), cudaErrorLaunchTimeout % 256);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(computes_as_the_host_does),
        cmocka_unit_test(addresses_are_checked), cmocka_unit_test(a_missing_barrier_shows),
        cmocka_unit_test(a_copy_that_is_not_waited_for_shows), cmocka_unit_test(a_missing_dependency_shows),
        cmocka_unit_test(lanes_and_warps_that_do_not_come_show), cmocka_unit_test(blocks_meet_or_wait_for_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
